// Calls of libc that change the calling thread, when a goroutine makes them.
//
// A goroutine shares its thread with others, so a changed signal mask would apply to the next
// goroutine there: with SIGTERM blocked by a goroutine that is long gone, no thread handles it. To
// look for that at each switch, or at each goroutine's end, would cost a system call. So these
// functions stand in front of libc's, see the change where it is made, and leave the switch as it
// is.
//
// Signal mask: it belongs to the goroutine. While it differs from that of the Ms, the goroutine is
// bound to its thread, as by lock_os_thread(), and no other goroutine runs there. If it ends so,
// the thread ends with it.
//
// Signal stack: the M's own stays. It is large enough for a stack overflow's report, and still
// there when the goroutine's memory is gone. A goroutine that is bound by lock_os_thread() may
// change it.
//
// The definitions are weak: in a statically linked program libc's own may win, and then, as in a
// plug-in that brings the runtime, changes stay with the thread. In a sanitizer's build that is so
// too, because the sanitizer has functions of these names. Not seen are direct system calls.
#include "runtime/threads/thread_calls.h"

#include <gofer/go.h>

#include <cerrno>
#include <cstring>

#include "os/signal.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/threads/signal_stack.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {
namespace {

#if !defined(GOFER_ASAN) && !defined(GOFER_TSAN)

// The calling goroutine's; nullptr where the call is a thread's, the runtime's own, or a signal
// handler's on the M's signal stack: what that changes ends with it.
StackHead* callers_head() {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr || m->in_runtime.load(relaxed) != 0) return nullptr;
  if (process.forked.load(relaxed)) return nullptr;
  StackHead* head = m->curg->head;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool on_stack =
      here >= stack_low(m->curg->stack()) && here < reinterpret_cast<uintptr_t>(head);
  return on_stack ? head : nullptr;
}

bool has_usual_mask() {
  sigset_t now;
  os::set_signal_mask(SIG_BLOCK, nullptr, &now);
  return std::memcmp(&now, &threads.signal_mask, sizeof(uint64_t)) == 0;
}

int change_mask(int how, const sigset_t* set, sigset_t* old) {
  const int error = os::set_signal_mask(how, set, old);
  StackHead* head = error == 0 && set != nullptr ? callers_head() : nullptr;
  if (head == nullptr) return error;
  const bool own = !has_usual_mask();
  if (own == head->own_mask) return 0;
  head->own_mask = own;
  if (own) {
    lock_os_thread();
  } else {
    unlock_os_thread();
  }
  return 0;
}

constexpr int autodisarm = 1 << 31;  // SS_AUTODISARM, which libc's headers do not have

// What the kernel would say of it: SS_ONSTACK is another name of 0 there.
int check_signal_stack(const stack_t& stack) {
  const int mode = stack.ss_flags & ~autodisarm;
  if (mode == SS_DISABLE) return 0;
  if (mode != SS_ONSTACK && mode != 0) return EINVAL;
  return stack.ss_size < least_signal_stack() ? ENOMEM : 0;
}

int change_signal_stack(const stack_t* stack, stack_t* old) {
  const StackHead* head = stack != nullptr ? callers_head() : nullptr;
  const bool keep = head != nullptr && head->locks == (head->own_mask ? 1 : 0);
  if (keep) {
    if (const int error = check_signal_stack(*stack); error != 0) return error;
  }
  return -os::set_kernel_signal_stack(keep ? nullptr : stack, old);
}

int as_errno(int error) {
  if (error == 0) return 0;
  os::set_errno(error);
  return -1;
}

#endif

}  // namespace

void set_usual_mask(const sigset_t& starters) {
  threads.signal_mask = starters;
  sigdelset(&threads.signal_mask, SIGURG);
}

}  // namespace gofer::internal

#if !defined(GOFER_ASAN) && !defined(GOFER_TSAN)

extern "C" {

[[gnu::weak]] GOFER_API int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return gofer::internal::change_mask(how, set, old);
}

[[gnu::weak]] GOFER_API int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return gofer::internal::as_errno(gofer::internal::change_mask(how, set, old));
}

[[gnu::weak]] GOFER_API int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  return gofer::internal::as_errno(gofer::internal::change_signal_stack(stack, old));
}

}  // extern "C"

#endif
