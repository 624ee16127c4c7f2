#include "runtime/signal_stack.h"

#include <sys/auxv.h>

#include "os/memory.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace gofer::internal {

SignalStack::SignalStack() {
  // The kernel's own frame grows with the processor's vector registers; the rest is for the report.
  const size_t frame = getauxval(AT_MINSIGSTKSZ);
  size_ = (frame + 64 * 1024 + os::page_size - 1) & ~(os::page_size - 1);
  memory_ = os::reserve(size_);
  if (memory_ == nullptr) return;  // then an overflow ends the process without a report
  stack_t mine{};
  mine.ss_sp = memory_;
  mine.ss_size = size_;
  sigaltstack(&mine, &before_);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  sigset_t all;
  sigset_t was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was);
  sigaltstack(&before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &was, nullptr);
  os::release(memory_, size_);
}

}  // namespace gofer::internal
