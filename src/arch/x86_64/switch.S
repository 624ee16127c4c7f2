// gofer_switch, gofer_restart and the first frame of a goroutine, for x86-64 System V.
//
// The frame of a stack that does not run, from its saved stack pointer upwards:
//   0: mxcsr (4 bytes), 4: x87 control word (2), 8: r15, r14, r13, r12, rbx, rbp, return address
//
// `ret` rather than an indirect jump at the end: every goroutine was switched away at the one call
// of gofer_switch, so the processor's return stack predicts it.
// The control words are callee-saved by the ABI. Loading them is slow, comparing is not, and they
// hardly ever differ.

  .text
  .globl gofer_switch
  .hidden gofer_switch
  .type gofer_switch, @function
  .p2align 5
gofer_switch:  // rdi = save, rsi = load, rdx = m
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  pushq %r12
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r12, 0
  pushq %r13
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r13, 0
  pushq %r14
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r14, 0
  pushq %r15
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r15, 0
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movl (%rsp), %ecx
  movzwl 4(%rsp), %r8d
  movq %rsi, %rsp
  cmpl %ecx, (%rsp)
  jne 2f
  cmpw %r8w, 4(%rsp)
  jne 3f
1:
  .cfi_remember_state
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r15
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r15
  popq %r14
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r14
  popq %r13
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r13
  popq %r12
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r12
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  movq %rdx, %rax
  ret
2:
  .cfi_restore_state
  ldmxcsr (%rsp)
  cmpw %r8w, 4(%rsp)
  je 1b
3:
  fldcw 4(%rsp)
  jmp 1b
  .cfi_endproc
  .size gofer_switch, . - gofer_switch

// The first frame. Its return address is undefined: unwinders stop here.
  .globl gofer_entry
  .hidden gofer_entry
  .type gofer_entry, @function
  .p2align 4
gofer_entry:  // rax = m, as gofer_switch returned it
  .cfi_startproc
  .cfi_undefined %rip
  movq %rax, %rdi
  xorl %ebp, %ebp
  call gofer_main@PLT
  ud2
  .cfi_endproc
  .size gofer_entry, . - gofer_entry

  .globl gofer_restart
  .hidden gofer_restart
  .type gofer_restart, @function
  .p2align 4
gofer_restart:  // rdi = top, rsi = m
  .cfi_startproc
  movq %rdi, %rsp
  movq %rsi, %rax
  stmxcsr -8(%rsp)
  fnstcw -4(%rsp)
  cmpl $0x1f80, -8(%rsp)  // the defaults of make_frame
  jne 1f
  cmpw $0x37f, -4(%rsp)
  je gofer_entry
1:
  movl $0x1f80, -8(%rsp)
  movw $0x37f, -4(%rsp)
  ldmxcsr -8(%rsp)
  fldcw -4(%rsp)
  jmp gofer_entry
  .cfi_endproc
  .size gofer_restart, . - gofer_restart

  .section .note.GNU-stack, "", @progbits
