// A scope in which the calling goroutine is not paused.
#pragma once

#include <gofer/detail/config.h>

namespace gofer {

/// While the object lives, the goroutine that made it is not paused when its time slice is over. It
/// is for a few instructions that must run without a pause, such as the reading of two clocks. It
/// prevents neither the kernel from interrupting the thread nor the goroutine from blocking. At
/// most 255 may be nested. In a foreign thread it does nothing.
class [[nodiscard]] no_preempt {
 public:
  [[nodiscard]] GOFER_API no_preempt() noexcept;
  GOFER_API ~no_preempt();
  no_preempt(const no_preempt&) = delete;
  no_preempt& operator=(const no_preempt&) = delete;
};

}  // namespace gofer
