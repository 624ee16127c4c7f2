// The unwinder's way into another stack, and a call on another stack, for x86-64 System V.

// CFA = registers[7] (DW_CFA_def_cfa_expression: DW_OP_breg3 56, DW_OP_deref); every other register
// n is saved at registers + 8n (DW_CFA_expression n: DW_OP_breg3 8n, as a two-byte LEB128). A
// signal frame, so that rip is looked up as it is, not as a return address.
  .text
  .globl gofer_unwind_from
  .hidden gofer_unwind_from
  .type gofer_unwind_from, @function
gofer_unwind_from:  // rdi = registers, rsi = each, rdx = argument
  .cfi_startproc
  .cfi_signal_frame
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  movq %rdi, %rbx
  .cfi_remember_state
  .cfi_escape 0x0f, 0x03, 0x73, 0x38, 0x06
  .irp n, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16
  .cfi_escape 0x10, \n, 0x03, 0x73, 0x80 | ((8 * \n) & 0x7f), (8 * \n) >> 7
  .endr
  movq %rsi, %rdi
  movq %rdx, %rsi
  call _Unwind_Backtrace@PLT
  .cfi_restore_state
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size gofer_unwind_from, . - gofer_unwind_from

// A frame pointer chain as usual, so that unwinders find the way back to the old stack.
  .globl gofer_call_on_stack
  .hidden gofer_call_on_stack
  .type gofer_call_on_stack, @function
gofer_call_on_stack:  // rdi = run, rsi = argument, rdx = top
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rdx, %rsp
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size gofer_call_on_stack, . - gofer_call_on_stack

  .section .note.GNU-stack, "", @progbits
