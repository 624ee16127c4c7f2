// What the compiler must be able to do, and the visibility of the library's symbols: everything is
// hidden but what carries GOFER_API. Every public header includes this one first.
#pragma once

// A header that is not there ends the compilation, so that the reason is the first and only error.
#if __cplusplus < 202002L
#error "Gofer needs C++20: compile with -std=c++20 or newer (GCC 11, Clang 14 or newer)"
#include <gofer/detail/needs-c++20>
#elif !defined(__cpp_exceptions)
#error "Gofer needs exceptions, by which errors reach the caller: compile without -fno-exceptions"
#include <gofer/detail/needs-exceptions>
#endif

#define GOFER_API __attribute__((visibility("default")))
