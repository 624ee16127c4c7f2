// The alternate signal stack of an M: a stack overflow is reported on it.
#pragma once

#include <signal.h>

#include <cstddef>

namespace gofer::internal {

/// The least size that the kernel takes, at which a handler has hardly any room.
size_t least_signal_stack();

/// Installed while it lives. The one found before (a sanitizer's, say) is put back at the end.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  const void* memory() const { return memory_; }
  size_t size() const { return memory_ == nullptr ? 0 : size_; }
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
  stack_t before_{};
};

}  // namespace gofer::internal
