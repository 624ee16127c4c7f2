// A program with a sanitizer and a runtime without it: see sanitizer_mismatch.cc.
#pragma once

namespace gofer::internal {

/// Prints a warning if the program is built with a sanitizer and the runtime is not.
void warn_of_sanitizer();

}  // namespace gofer::internal
