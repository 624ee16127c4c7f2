// __morestack: where the prologues of GCC's -fsplit-stack go when they find their stack too small.
//
// Such a prologue compares the stack pointer with a limit in the thread's control block, %fs:0x70.
// Gofer's stacks do not grow, so the limit is 0 and no prologue ever comes here. To ask a thread for
// a pause the runtime raises it to ~0: the next prologue does. We keep what the function's caller may
// have left in registers, call the runtime, and let the function begin as if nothing had happened.
//
// All symbols are hidden, and this object is linked into every executable and shared library that is
// built so: each has a copy of its own in front of libgcc's, which would look for a larger stack. It
// is an object, not an archive, because link-time optimisation names __morestack only after the
// archives have been searched. The runtime is a weak reference: a library may be used in a program
// without it.
//
// What GCC 12 writes, and what becomes of it here:
//   movq %r10, %rax                if the function has a static chain; in other variadic functions
//                                  %rax is the number of vector arguments: kept either way
//   movl $frame, %r10d; movl $arguments, %r11d    sizes in bytes, of no interest
//   call __morestack
//   ret                            the way back from libgcc's new stack: we resume behind it
//   endbr64                        with -fcf-protection
//   movq %rax, %r10                the static chain again
//   leaq 24(%rbp), %r11            variadic functions: their arguments on the stack, as seen from the
//                                  frame of a __morestack that called them; we return to them, so
//                                  %r11 is set here and the instruction skipped
//
// There is no __morestack_large_model: with -mcmodel=large GCC 12 loads %r11 once more in variadic
// functions. Linking such code fails, because libgcc's object with that name has all the others too.
//
// Going back to another address than the call's does not agree with shadow stacks. This file has no
// .note.gnu.property, so the linker declares nothing that contains it to be fit for them.

#define LIMIT %fs:0x70

// The parts of the processor's state in which arguments, or values that a caller of local functions
// knows to be untouched, may lie: x87, SSE, AVX and the three of AVX-512. Together less than a page,
// so the way down the stack cannot step over a guard.
#define STATE 0xe7
#define LEGACY_SIZE 512  /* of fxsave, on a processor without xsave */
#define HEADER_SIZE 64

  .macro SAVE register
  pushq \register
  .set depth, depth + 8
  .cfi_offset \register, -depth
  .endm

  .macro RESTORE register
  popq \register
  .cfi_restore \register
  .endm

  .weak gofer_prologue_pause

  .text
  .globl __morestack
  .globl __morestack_non_split    // what gold and lld call instead before a call into other code
  .hidden __morestack
  .hidden __morestack_non_split
  .type __morestack, @function
  .type __morestack_non_split, @function
  .p2align 4
__morestack:
__morestack_non_split:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  .set depth, 16
  SAVE %rax
  SAVE %rcx
  SAVE %rdx
  SAVE %rsi
  SAVE %rdi
  SAVE %r8
  SAVE %r9
  pushq %r10
  pushfq

  movl state_size(%rip), %eax
  testl %eax, %eax
  jnz 1f
  call measure_state
1:
  subq %rax, %rsp
  andq $-64, %rsp
  cmpl $LEGACY_SIZE, %eax
  je 2f
  xorl %edx, %edx
  .irp word, 0, 8, 16, 24, 32, 40, 48, 56  // xsave leaves most of the header as it was
  movq %rdx, LEGACY_SIZE + \word(%rsp)
  .endr
  movl $STATE, %eax
  xsave64 (%rsp)
  jmp 3f
2:
  fxsave64 (%rsp)
3:

  // First of all, and here: what is asked for from now on is a pause of its own, and an inline
  // function that the runtime shares with the program may have the program's prologue.
  movq $0, LIMIT
  movq gofer_prologue_pause@GOTPCREL(%rip), %rax
  testq %rax, %rax
  jz 5f
  call *%rax
5:

  cmpl $LEGACY_SIZE, state_size(%rip)
  je 6f
  movl $STATE, %eax
  xorl %edx, %edx
  xrstor64 (%rsp)
  jmp 7f
6:
  fxrstor64 (%rsp)
7:

  // Two bytes at a time: no instruction that may stand here is shorter, so nothing is read that is
  // not code.
  movq 8(%rbp), %rcx
  incq %rcx
  cmpw $0x0ff3, (%rcx)  // endbr64
  jne 8f
  cmpw $0xfa1e, 2(%rcx)
  jne 8f
  addq $4, %rcx
8:
  cmpw $0x8949, (%rcx)  // movq %rax, %r10
  jne 9f
  cmpb $0xc2, 2(%rcx)
  jne 9f
  addq $3, %rcx
  movq -8(%rbp), %rax
  movq %rax, -64(%rbp)
9:
  cmpw $0x8d4c, (%rcx)  // leaq 24(%rbp), %r11
  jne 10f
  cmpw $0x185d, 2(%rcx)
  jne 10f
  addq $4, %rcx
  leaq 24(%rbp), %r11
10:
  movq %rcx, 8(%rbp)

  leaq -72(%rbp), %rsp
  popfq
  popq %r10
  RESTORE %r9
  RESTORE %r8
  RESTORE %rdi
  RESTORE %rsi
  RESTORE %rdx
  RESTORE %rcx
  RESTORE %rax
  popq %rbp
  .cfi_restore %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size __morestack, . - __morestack
  .size __morestack_non_split, . - __morestack_non_split

// Sets state_size, once a target, because cpuid may cost a trip to a hypervisor; two threads at the
// same time find the same. Returns it in %eax; changes %ecx, %edx, %esi, %edi, %r8d.
  .type measure_state, @function
  .p2align 4
measure_state:
  .cfi_startproc
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  movl $LEGACY_SIZE, %r8d
  movl $1, %eax
  cpuid
  btl $27, %ecx  // the system has xsave in use
  jnc 3f
  xorl %ecx, %ecx
  xgetbv
  andl $STATE, %eax
  movl %eax, %edi
  addl $HEADER_SIZE, %r8d
  movl $2, %esi
1:
  btl %esi, %edi
  jnc 2f
  movl $0xd, %eax
  movl %esi, %ecx
  cpuid  // %eax: size, %ebx: offset
  addl %ebx, %eax
  cmpl %r8d, %eax
  cmoval %eax, %r8d
2:
  incl %esi
  cmpl $8, %esi
  jb 1b
3:
  movl %r8d, state_size(%rip)
  movl %r8d, %eax
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size measure_state, . - measure_state

// alloca and variable-length arrays compare with the limit too, and call this with a size for memory
// that lives as long as the function's frame. So it is taken from that frame: such a function finds
// its variables by %rbp, and takes every other way on with a lower %rsp as well. What lies between
// the two must not be in use: hence -mno-accumulate-outgoing-args. Touches every page, since the
// function believes that this was done. The pause is left to the next prologue.
  .globl __morestack_allocate_stack_space
  .hidden __morestack_allocate_stack_space
  .type __morestack_allocate_stack_space, @function
  .p2align 4
__morestack_allocate_stack_space:
  .cfi_startproc
  popq %rdx
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %rdx
  addq $15, %rdi
  andq $-16, %rdi
1:
  cmpq $4096, %rdi
  jb 2f
  subq $4096, %rsp
  orq $0, (%rsp)
  subq $4096, %rdi
  jmp 1b
2:
  subq %rdi, %rsp
  movq %rsp, %rax
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rip, -8
  ret
  .cfi_endproc
  .size __morestack_allocate_stack_space, . - __morestack_allocate_stack_space

  .local state_size
  .comm state_size, 4, 4

  .section .note.GNU-stack, "", @progbits
