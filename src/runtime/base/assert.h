// Assertions of the runtime: on in debug and test builds (GOFER_CHECKS), free otherwise.
#pragma once

namespace gofer::internal {

#ifdef GOFER_CHECKS
inline constexpr bool checks_enabled = true;
#else
inline constexpr bool checks_enabled = false;
#endif

/// Prints the condition and where it stood, with a trace, and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace gofer::internal

// A macro, because it shows the text and the place of the condition.
#define GOFER_ASSERT(condition)                      \
  (!::gofer::internal::checks_enabled || (condition) \
       ? static_cast<void>(0)                        \
       : ::gofer::internal::assertion_failed(#condition, __FILE__, __LINE__))
