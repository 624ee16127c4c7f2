// Runs code that may fault. libdw does not survive a malloc that fails at the wrong moment, nor
// every broken file, but the report must survive both.
//
// If two threads need it at once, one waits. While the code runs, the signals by which it could
// fail have our handlers, and this thread has no alternate signal stack. The report of a stack
// overflow runs on that stack already, and a second signal would begin at its top and overwrite the
// report's frames. (If the caller itself runs there, the stack cannot be taken away. Then a second
// signal begins below the caller's frames.) If another thread faults meanwhile, the handler that
// was there before runs, on that thread's own alternate stack.
#include "debug/fault_guard.h"

#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <iterator>

#include "os/raw_syscall.h"
#include "os/thread.h"

namespace gofer::internal {
namespace {

constexpr int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// The state of the one thread that runs guarded. A thread that finds another one there waits, but
// not for ever: the other one may have stopped for good.
struct Guard {
  std::atomic<int> thread{0};
  sigjmp_buf begin{};
  struct sigaction before[std::size(faults)]{};
};
constinit Guard guard;

void pass_on(int signal_number, siginfo_t* info, void* context) {
  for (size_t i = 0; i < std::size(faults); ++i) {
    if (faults[i] != signal_number) continue;
    const struct sigaction& before = guard.before[i];
    if ((before.sa_flags & SA_SIGINFO) != 0) {
      before.sa_sigaction(signal_number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal_number);
    } else {
      sigaction(signal_number, &before, nullptr);  // the instruction faults once more
    }
  }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  if (os::thread_id() == guard.thread.load(std::memory_order_relaxed)) siglongjmp(guard.begin, 1);
  pass_on(signal_number, info, context);
}

// Makes the system call itself, because thread_calls.cc replaces libc's function.
void change_signal_stack(const stack_t* stack, stack_t* old) {
  os::raw_syscall(SYS_sigaltstack, reinterpret_cast<long>(stack), reinterpret_cast<long>(old));
}

bool take_guard() {
  constexpr int patience_ms = 2000;
  for (int waited_ms = 0; waited_ms < patience_ms; ++waited_ms) {
    int nobody = 0;
    if (guard.thread.compare_exchange_strong(nobody, os::thread_id(), std::memory_order_acquire)) {
      return true;
    }
    if (nobody == os::thread_id()) return false;
    usleep(1000);
  }
  return false;
}

}  // namespace

bool run_guarded(void (*run)(void*), void* argument) {
  if (!take_guard()) {
    run(argument);
    return true;
  }
  sigset_t own;
  sigset_t before;
  sigemptyset(&own);
  for (int signal_number : faults) sigaddset(&own, signal_number);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  stack_t signal_stack{};
  change_signal_stack(&none, &signal_stack);
  for (size_t i = 0; i < std::size(faults); ++i) sigaction(faults[i], &action, &guard.before[i]);
  os::set_signal_mask(SIG_UNBLOCK, &own, &before);  // the caller may be a handler

  const bool survived = sigsetjmp(guard.begin, 0) == 0;
  if (survived) run(argument);

  os::set_signal_mask(SIG_SETMASK, &before, nullptr);
  for (size_t i = 0; i < std::size(faults); ++i) sigaction(faults[i], &guard.before[i], nullptr);
  change_signal_stack(&signal_stack, nullptr);
  guard.thread.store(0, std::memory_order_release);
  return survived;
}

}  // namespace gofer::internal
