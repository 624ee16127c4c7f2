// Frame pointers, for profilers that follow them (`perf record -g`).
//
// The library is compiled without them, because they cost every switch. But the functions between a
// goroutine's first frame and the program's code need one. A program that is compiled with frame
// pointers saves what it finds in the register, and that must lead to the first frame
// (gofer_entry), which has set the register to 0.
#pragma once

/// At the begin of a function: makes the compiler set up a frame pointer, in this function alone.
#define GOFER_HAS_FRAME_POINTER asm volatile("" : : "r"(__builtin_frame_address(0)))
