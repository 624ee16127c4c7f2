// Goroutines: starting them, running a program of them, and configuring the scheduler.
//
//   gofer::go([] { work(); });                 // from any thread; the runtime starts by itself
//   gofer::go(handle, std::move(socket), 42);  // callable and arguments, as std::thread takes them
//   int main() { return gofer::run([] { ...; return 0; }); }
//
// Rules that every user should know:
//  - A goroutine may continue in another thread after a call that blocks, and after yield(). `go`
//    never moves the caller. Do not keep the address of a thread_local, or of errno, nor hold a
//    std::mutex, across a blocking call (docs/PARKING.md).
//  - A signal handler must not call Gofer, not even a function that never waits.
//  - An exception that leaves a goroutine's function ends the process with a report (panic.h).
//  - When main returns or exit() is called, goroutines continue like detached threads until the
//    process is gone. So the destructor of a static object may wait for goroutines, and must wait
//    for those that use the object. A goroutine that calls exit() runs the exit handlers as a
//    foreign thread (one that is not the runtime's), not as a goroutine. If a handler waits for
//    something that no goroutine can do any more, the runtime prints one message and continues the
//    exit without that handler, with the same status.
//  - In the child of a fork() the runtime must not be used: the first use ends the child with a
//    message. The child may call exec and _exit, and may close an fd; the parent keeps it open.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/spawn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gofer {

/// Starts a goroutine that calls f(args...). The callable and the arguments are copied or moved
/// into the goroutine, as std::thread does (use std::ref for references); a result is dropped.
/// Never blocks and never switches. Throws std::bad_alloc if there is no memory or no address space
/// for one more goroutine, and std::system_error if the very first thread cannot be started. In
/// both cases nothing has been moved from.
template <class F, class... Args>
  requires(std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...> &&
           !std::is_same_v<std::decay_t<F>, go_options>)
[[gnu::always_inline]] inline void go(F&& f, Args&&... args) {
  detail::spawn(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}

/// The same, with a name or a stack size: go({.name = "reader"}, f).
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
[[gnu::always_inline]] inline void go(const go_options& options, F&& f, Args&&... args) {
  detail::spawn(&options, std::forward<F>(f), std::forward<Args>(args)...);
}

namespace detail {

GOFER_API void run_main(void (*entry)(void*), void* arg);

/// The function that run() calls, and the place of its result.
template <class F, class Result>
struct main_call {
  using kept = std::conditional_t<std::is_reference_v<Result>, std::remove_reference_t<Result>*,
                                  std::optional<Result>>;
  F* f;
  kept result{};
  static void enter(void* self) {
    auto* call = static_cast<main_call*>(self);
    if constexpr (std::is_reference_v<Result>) {
      auto&& r = detail::call(*call->f);
      call->result = __builtin_addressof(r);
    } else {
      call->result.emplace(detail::call(*call->f));
    }
  }
};

template <class F>
struct main_call<F, void> {
  F* f;
  static void enter(void* self) { detail::call(*static_cast<main_call*>(self)->f); }
};

}  // namespace detail

/// Runs f as the main goroutine and returns its result once f returns; other goroutines may still
/// exist then. The calling thread waits. If meanwhile no goroutine can ever run again, the runtime
/// reports this as Go does ("all goroutines are asleep - deadlock!", exit code 2).
template <class F>
  requires(std::is_invocable_v<F&>)
std::invoke_result_t<F&> run(F&& f) {
  using result = std::invoke_result_t<F&>;
  detail::main_call<std::remove_reference_t<F>, result> call{__builtin_addressof(f)};
  detail::run_main(&decltype(call)::enter, &call);
  if constexpr (!std::is_void_v<result>) return static_cast<result&&>(*call.result);
}

/// Lets other goroutines run first. In a foreign thread it calls sched_yield.
GOFER_API void yield();

/// For long loops. Lets other goroutines run if the caller's time slice is over, and otherwise
/// costs about a nanosecond. A goroutine that computes without calling checkpoint(), or any other
/// function of the runtime, is paused together with its thread. One that calls it at least every
/// millisecond gives way as if it had called yield(), and costs no thread. In a foreign thread it
/// does nothing.
GOFER_API void checkpoint();

/// Ends the calling goroutine and destroys the objects on its stack. This is a forced unwind: a
/// `catch (...)` must rethrow it, and it must not meet a noexcept function. If the main goroutine
/// calls it, the others continue and run() does not return. Outside of a goroutine it is a fatal
/// error.
[[noreturn]] GOFER_API void goexit();

/// Sets how many goroutines may execute at once and returns the old setting; n <= 0 only returns
/// it. The initial value is the environment variable GOMAXPROCS, or else the number of CPUs that
/// the process may really use (affinity and cgroup quota).
GOFER_API int gomaxprocs(int n);

/// Sets how many threads the runtime may have at most and returns the old setting; n <= 0 only
/// returns it. The default is 10000. As in Go, it is a fatal error if the program itself asks for
/// more, by calls in blocking() or by goroutines with lock_os_thread. Threads that the runtime adds
/// of its own accord, for goroutines that compute or block their threads unannounced, stop at the
/// limit, with one message.
GOFER_API int set_max_threads(int n);

/// The number of goroutines that exist now.
GOFER_API std::size_t num_goroutine();

/// The number of CPUs that this process may use.
GOFER_API int num_cpu();

/// Binds the calling goroutine to its present thread: until unlock_os_thread has been called as
/// many times, the goroutine runs only in that thread, and no other goroutine runs there. If the
/// goroutine ends while it is bound, the thread ends with it. In a foreign thread it has no effect.
GOFER_API void lock_os_thread();
GOFER_API void unlock_os_thread();

namespace this_goroutine {
/// The calling goroutine's number (from 1, never reused), 0 in a foreign thread.
GOFER_API std::uint64_t id() noexcept;
/// The name it was given, or empty. Valid while the goroutine lives.
GOFER_API std::string_view name() noexcept;
using gofer::yield;  // timer.h has sleep_for and sleep_until
}  // namespace this_goroutine

}  // namespace gofer
