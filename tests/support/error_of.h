// The error of a channel that is misused.
#pragma once

#include <gofer/chan.h>

#include <functional>
#include <string>

namespace gofer::test {

/// The text of the channel_error that f throws.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const channel_error& e) {
    return e.what();
  }
  return "(no error)";
}

}  // namespace gofer::test
