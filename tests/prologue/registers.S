// gofer_test_registers(const State* in, State* out, int avx512): fills the registers from *in, calls
// __morestack as a prologue does, and stores into *out what came back. State is in calls.cc.
  .text
  .globl gofer_test_registers
  .type gofer_test_registers, @function
gofer_test_registers:
  pushq %rbx
  pushq %rbp
  pushq %r12
  movq %rdi, %rbx
  movq %rsi, %rbp
  movl %edx, %r12d

  testl %r12d, %r12d
  jz 1f
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovdqu64 64 * \n(%rbx), %zmm\n
  .endr
  .irp n, 0,1,2,3,4,5,6,7
  kmovw 2048 + 8 * \n(%rbx), %k\n
  .endr
  jmp 2f
1:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovdqu 64 * \n(%rbx), %ymm\n
  .endr
2:
  pushq 2176(%rbx)
  popfq
  movq 2112(%rbx), %rax
  movq 2120(%rbx), %rcx
  movq 2128(%rbx), %rdx
  movq 2136(%rbx), %rsi
  movq 2144(%rbx), %rdi
  movq 2152(%rbx), %r8
  movq 2160(%rbx), %r9
  movq 2168(%rbx), %r10

  call __morestack
  ret

  movq %rax, 2112(%rbp)
  pushfq
  popq 2176(%rbp)
  movq %rcx, 2120(%rbp)
  movq %rdx, 2128(%rbp)
  movq %rsi, 2136(%rbp)
  movq %rdi, 2144(%rbp)
  movq %r8, 2152(%rbp)
  movq %r9, 2160(%rbp)
  movq %r10, 2168(%rbp)
  testl %r12d, %r12d
  jz 3f
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovdqu64 %zmm\n, 64 * \n(%rbp)
  .endr
  .irp n, 0,1,2,3,4,5,6,7
  kmovw %k\n, 2048 + 8 * \n(%rbp)
  .endr
  jmp 4f
3:
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovdqu %ymm\n, 64 * \n(%rbp)
  .endr
4:
  vzeroupper
  popq %r12
  popq %rbp
  popq %rbx
  ret
  .size gofer_test_registers, . - gofer_test_registers
  .section .note.GNU-stack, "", @progbits
