// The alternate signal stack of an M: a stack overflow is reported on it.
#pragma once

#include <signal.h>

#include <cstddef>

namespace gofer::internal {

/// Installed while it lives. The one found before (a sanitizer's, say) is put back at the end.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
  stack_t before_{};
};

}  // namespace gofer::internal
