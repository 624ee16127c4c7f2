#include "runtime/threads/signal_stack.h"

#include <sys/auxv.h>

#include "os/memory.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace gofer::internal {

// The kernel's own frame grows with the processor's vector registers.
size_t least_signal_stack() {
  constexpr size_t of_old_kernels = 2048;
  const size_t least = getauxval(AT_MINSIGSTKSZ);
  return least != 0 ? least : of_old_kernels;
}

SignalStack::SignalStack() {
  // The rest is for the report.
  size_ = (least_signal_stack() + 64 * 1024 + os::page_size - 1) & ~(os::page_size - 1);
  memory_ = os::reserve(size_);
  if (memory_ == nullptr) return;  // then an overflow ends the process without a report
  stack_t mine{};
  mine.ss_sp = memory_;
  mine.ss_size = size_;
  os::set_signal_stack(&mine, &before_);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  sigset_t all;
  sigset_t was;
  sigfillset(&all);
  os::set_signal_mask(SIG_SETMASK, &all, &was);
  os::set_signal_stack(&before_, nullptr);
  os::set_signal_mask(SIG_SETMASK, &was, nullptr);
  os::release(memory_, size_);
}

void check_entry(const M* m) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (m->in_runtime.load(relaxed) == 0 && here - m->signal_stack >= m->signal_stack_size) return;
  fatal_error("a signal handler called Gofer, which no signal handler may");
}

}  // namespace gofer::internal
