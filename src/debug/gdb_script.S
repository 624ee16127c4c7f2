// The script for gdb, in a static program: the section has nothing that is loaded, and gdb runs the script when it opens the
// program, if its auto-load safe-path has the program's folder. The first byte says that it is Python; the name is
// what gdb calls it.
//
// The symbol is for the linker: gofer_debug_goroutines refers to it, so every program that has the table has this object.

  .section .rodata
  .globl gofer_gdb_script
  .hidden gofer_gdb_script
  .type gofer_gdb_script, @object
gofer_gdb_script:
  .byte 0
  .size gofer_gdb_script, . - gofer_gdb_script

#ifdef GOFER_GDB_SCRIPT
  .section .debug_gdb_scripts, "MS", @progbits, 1
  .byte 4
  .ascii "gofer-gdb.py\n"
  .incbin GOFER_GDB_SCRIPT
  .byte 0
#endif

  .section .note.GNU-stack, "", @progbits
