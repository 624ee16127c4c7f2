// Goroutines: start them, run a program of them, and steer the scheduler.
//
//   gofer::go([] { work(); });                 // from any thread; the runtime starts by itself
//   gofer::go(handle, std::move(socket), 42);  // callable and arguments, as std::thread takes them
//   int main() { return gofer::run([] { ...; return 0; }); }
//
// Rules that every user should know:
//  - A goroutine may go on in another thread after a call that blocks, and after yield(). `go`
//    never moves the caller. Do not keep the address of a thread_local, or of errno, nor hold a
//    std::mutex, across a blocking call (docs/PARKING.md).
//  - A signal handler must not call Gofer, not even what does not wait.
//  - An exception that leaves a goroutine's function ends the process with a report.
//  - When main returns or exit() is called, goroutines go on like detached threads until the
//    process is gone. So the destructor of a static object may wait for goroutines, and must wait
//    for those that use the object. A goroutine that calls exit() runs the exit handlers as a
//    foreign thread (one that is not the runtime's), not as a goroutine. If a handler waits for
//    what no goroutine can do any more, one message says so, and the exit goes on without that
//    handler, with its status.
//  - In the child of a fork() the runtime must not be used (exec and _exit are fine, and to close
//    an fd, which stays open in the parent): the first use there ends the child with a message.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/spawn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gofer {

/// Starts a goroutine that calls f(args...). The callable and the arguments are copied or moved
/// into the goroutine, as std::thread does (use std::ref for references); a result is dropped.
/// Never blocks and never switches. Throws std::bad_alloc when there is no memory or no address
/// space for one more goroutine, std::system_error when the very first thread cannot be started;
/// nothing is lost then.
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

/// What run() calls, and where the result waits.
template <class F, class Result>
struct main_call {
  using kept = std::conditional_t<std::is_reference_v<Result>, std::remove_reference_t<Result>*,
                                  std::optional<Result>>;
  F* f;
  kept result{};
  static void enter(void* self) {
    auto* call = static_cast<main_call*>(self);
    if constexpr (std::is_reference_v<Result>) {
      auto&& r = std::invoke(*call->f);
      call->result = std::addressof(r);
    } else {
      call->result.emplace(std::invoke(*call->f));
    }
  }
};

template <class F>
struct main_call<F, void> {
  F* f;
  static void enter(void* self) { std::invoke(*static_cast<main_call*>(self)->f); }
};

}  // namespace detail

/// Runs f as the main goroutine and returns its result once f returns; other goroutines may still
/// be there then. The calling thread waits. While it does, a state in which no goroutine can ever
/// run again is reported as Go does ("all goroutines are asleep - deadlock!", exit code 2).
template <class F>
  requires(std::is_invocable_v<F&>)
std::invoke_result_t<F&> run(F&& f) {
  using result = std::invoke_result_t<F&>;
  detail::main_call<std::remove_reference_t<F>, result> call{std::addressof(f)};
  detail::run_main(&decltype(call)::enter, &call);
  if constexpr (!std::is_void_v<result>) return static_cast<result&&>(*call.result);
}

/// Lets other goroutines run first. In a foreign thread: sched_yield.
GOFER_API void yield();

/// For long loops: lets others run if the calling goroutine's time slice is over, else costs about
/// a nanosecond. A goroutine that computes without calling it, or anything else of the runtime, is
/// paused together with its thread; one that calls it every millisecond or more often gives way as
/// if it had called yield(), and costs no thread. In a foreign thread it does nothing.
GOFER_API void checkpoint();

/// Ends the calling goroutine, destroying the objects on its stack on the way (a forced unwind:
/// `catch (...)` must rethrow it, and it must not meet a noexcept function). When the main
/// goroutine calls it, the others go on and run() does not return.
/// Outside of a goroutine: a fatal error.
[[noreturn]] GOFER_API void goexit();

/// Sets how many goroutines may execute at once and returns the old setting; n <= 0 only asks.
/// At the start: the environment variable GOMAXPROCS, else the number of CPUs that the process
/// may really use (affinity and cgroup quota).
GOFER_API int gomaxprocs(int n);

/// Sets how many threads the runtime may have at most and returns the old setting; n <= 0 only
/// asks. The default is 10000. To need more is a fatal error, as in Go, if the program has asked
/// for them: calls in blocking() and goroutines with lock_os_thread. What the runtime adds by
/// itself, for goroutines that compute or block their threads unannounced, ends at the limit, with
/// one message.
GOFER_API int set_max_threads(int n);

/// Goroutines that exist now.
GOFER_API std::size_t num_goroutine();

/// CPUs that this process may use.
GOFER_API int num_cpu();

/// Binds the calling goroutine to its present thread: until as many calls of unlock_os_thread, the
/// goroutine runs in that thread only, and no other goroutine does. If it ends while it is bound,
/// the thread ends with it. In a foreign thread: no effect.
GOFER_API void lock_os_thread();
GOFER_API void unlock_os_thread();

namespace this_goroutine {
/// The calling goroutine's number (from 1, never reused), 0 in a foreign thread.
GOFER_API std::uint64_t id() noexcept;
/// The name it was given, or empty. Valid while the goroutine lives.
GOFER_API std::string_view name() noexcept;
}  // namespace this_goroutine

}  // namespace gofer
