// Waiting for a number of goroutines to be done.
//
//   gofer::wait_group wg;
//   for (auto& part : parts) wg.go([&part] { work(part); });
//   wg.wait();
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/spawn.h>
#include <gofer/detail/word.h>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace gofer {

class context;

namespace internal {
struct Waiter;
struct WaitLimit;
}  // namespace internal

/// A counter that can be waited for. Works in goroutines and in foreign threads. The wait_group
/// may be destroyed as soon as wait() has returned.
class GOFER_API wait_group {
 public:
  wait_group() = default;
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  /// Adds n, which may be negative. All waiters continue when the counter becomes zero. A counter
  /// below zero is a fatal error ("sync: negative WaitGroup counter").
  void add(int n) {
    const auto delta = static_cast<std::uint64_t>(static_cast<std::int64_t>(n)) * one;
    const std::uint64_t now = state_.fetch_add(delta, detail::order::acq_rel) + delta;
    if (static_cast<std::int64_t>(now) < static_cast<std::int64_t>(one)) add_slow(now);
  }

  void done() { add(-1); }

  /// Returns once the counter is zero.
  void wait() {
    if (state_.load(detail::order::acquire) >= one) wait_until(detail::no_deadline);
  }
  /// Returns false if the time was over first.
  template <detail::duration_like D>
  [[nodiscard]] bool wait_for(D d) {
    return state_.load(detail::order::acquire) < one || wait_until(detail::deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool wait_until(Time t) {
    return state_.load(detail::order::acquire) < one || wait_until(detail::deadline_at(t));
  }
  /// Returns false if the context was done first.
  [[nodiscard]] bool wait(const context& ctx);

  /// Calls add(1) and starts a goroutine that calls f(args...) and, however it ends, done(). By
  /// then f, its arguments and the goroutine's local<T> values are destroyed, and the goroutine has
  /// left their code: after wait(), a plug-in that started such goroutines may be closed.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[gnu::always_inline]] inline void go(F&& f, Args&&... args) {
    start(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
  }
  /// The same, with a name or a stack size: wg.go({.name = "reader"}, f).
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[gnu::always_inline]] inline void go(const go_options& options, F&& f, Args&&... args) {
    start(&options, std::forward<F>(f), std::forward<Args>(args)...);
  }

 private:
  friend class latch;
  friend class task_group;
  // The counter is the upper half of the word, signed. Of the lower half, one bit says that there
  // are waiters, and one locks their list.
  static constexpr std::uint64_t one = std::uint64_t{1} << 32;
  static constexpr std::uint64_t waiting = 1;
  static constexpr std::uint64_t locked = 2;
  static constexpr std::uint64_t limited = 4;  // a waiter may give up

  struct done_unless_started {
    wait_group* group;
    ~done_unless_started() {
      if (group != nullptr) group->done();
    }
  };

  template <class F, class... Args>
  [[gnu::always_inline]] inline void start(const go_options* options, F&& f, Args&&... args) {
    add(1);
    done_unless_started undo{this};
    detail::spawn_member(options, this, std::forward<F>(f), std::forward<Args>(args)...);
    undo.group = nullptr;
  }
  bool try_wait() {
    return state_.load(detail::order::acquire) < one || wait_until(std::int64_t{0});
  }
  static void unlock(void* group);
  void add_slow(std::uint64_t now);
  void wake_limited(internal::Waiter*& list);
  bool wait_until(std::int64_t deadline_ns);
  bool wait_limited(const internal::WaitLimit& limit);
  void remove(internal::Waiter& w);

  detail::word<std::uint64_t> state_{0};
  detail::word<internal::Waiter*> waiters_{nullptr};  // the newest; meaningful with `waiting`
};

}  // namespace gofer
