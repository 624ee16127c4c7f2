// Checks what the compiler must support, and sets the visibility of the library's symbols: only
// those with GOFER_API are visible. Every public header includes this one first.
#pragma once

// Including a header that does not exist ends the compilation, so that the reason is the only
// error.
#if __cplusplus < 202002L
#error "Gofer needs C++20: compile with -std=c++20 or newer (GCC 11, Clang 14 or newer)"
#include <gofer/detail/needs-c++20>
#elif !defined(__cpp_exceptions)
#error "Gofer needs exceptions, by which errors reach the caller: compile without -fno-exceptions"
#include <gofer/detail/needs-exceptions>
#endif

#define GOFER_API __attribute__((visibility("default")))
