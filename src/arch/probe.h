// Probes for bpftrace, SystemTap and perf: GOFER_PROBE2(name, a, b) is a nop in the code and a note
// in the file, which says where the nop is and where to find the arguments. A tool that is told to
// use the probe puts a breakpoint there. docs/DEBUGGING.md lists the probes.
//
// The notes have the format of SystemTap's header for static probes (USDT), version 3, with the
// provider "gofer". The header is not used. The compiler takes its asm statements for large code,
// so functions of the scheduler were not inlined any more, and a yield took 16 instructions more
// instead of 2.
//
// The arguments are numbers in memory, such as g->id. The compiler notes the address of a memory
// operand instead of loading it, so a probe costs its nop and nothing else.
#pragma once

// Tools compare the address of the base with the one noted, in case the file was prelinked.
#define GOFER_PROBE_TEXT(name, arguments)                                     \
  "990: nop\n"                                                                \
  ".pushsection .note.stapsdt, \"?\", \"note\"\n"                             \
  ".balign 4\n"                                                               \
  ".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                                 \
  "992: .balign 4\n"                                                          \
  "993: .8byte 990b\n"                                                        \
  ".8byte _.stapsdt.base\n"                                                   \
  ".8byte 0\n"                                                                \
  ".asciz \"gofer\"\n"                                                        \
  ".asciz \"" #name                                                           \
  "\"\n"                                                                      \
  ".asciz \"" arguments                                                       \
  "\"\n"                                                                      \
  "994: .balign 4\n"                                                          \
  ".popsection\n"                                                             \
  ".ifndef _.stapsdt.base\n"                                                  \
  ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
  ".weak _.stapsdt.base\n"                                                    \
  ".hidden _.stapsdt.base\n"                                                  \
  "_.stapsdt.base: .space 1\n"                                                \
  ".size _.stapsdt.base, 1\n"                                                 \
  ".popsection\n"                                                             \
  ".endif\n"

// An argument is written "<size>@<operand>".
#define GOFER_PROBE1(name, a) \
  asm volatile inline(GOFER_PROBE_TEXT(name, "%c0@%1") : : "n"(sizeof(a)), "m"(a))
#define GOFER_PROBE2(name, a, b)                              \
  asm volatile inline(GOFER_PROBE_TEXT(name, "%c0@%1 %c2@%3") \
                      :                                       \
                      : "n"(sizeof(a)), "m"(a), "n"(sizeof(b)), "m"(b))
#define GOFER_PROBE3(name, a, b, c)                                  \
  asm volatile inline(GOFER_PROBE_TEXT(name, "%c0@%1 %c2@%3 %c4@%5") \
                      :                                              \
                      : "n"(sizeof(a)), "m"(a), "n"(sizeof(b)), "m"(b), "n"(sizeof(c)), "m"(c))
