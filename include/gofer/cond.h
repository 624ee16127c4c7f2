// cond: waits for a condition to become true, under a lock.
//
//   std::unique_lock lock(m);
//   ready.wait(lock, [&] { return !queue.empty(); });
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>
#include <gofer/detail/word.h>

#include <concepts>
#include <cstdint>

namespace gofer {

class context;

/// Go's sync.Cond for any Lockable, usually std::unique_lock<gofer::mutex>. There are no spurious
/// wake-ups, and signals wake the waiters in the order in which they arrived.
class GOFER_API cond {
 public:
  constexpr cond() noexcept = default;
  cond(const cond&) = delete;
  cond& operator=(const cond&) = delete;

  /// Releases the lock, waits for a signal or a broadcast that comes after this call began, and
  /// locks again.
  template <class Lock>
  void wait(Lock& lock) {
    wait_with(lock, detail::no_deadline);
  }
  template <class Lock, std::predicate Predicate>
  void wait(Lock& lock, Predicate is_true) {
    while (!is_true()) wait(lock);
  }
  /// Returns false if the time was over without a signal.
  template <class Lock, detail::duration_like D>
  bool wait_for(Lock& lock, D d) {
    return wait_with(lock, detail::deadline_after(d));
  }
  template <class Lock, detail::time_point_like Time>
  bool wait_until(Lock& lock, Time t) {
    return wait_with(lock, detail::deadline_at(t));
  }
  /// Returns the predicate's last result.
  template <class Lock, detail::duration_like D, std::predicate Predicate>
  [[nodiscard]] bool wait_for(Lock& lock, D d, Predicate is_true) {
    return wait_for_true(lock, detail::deadline_after(d), is_true);
  }
  template <class Lock, detail::time_point_like Time, std::predicate Predicate>
  [[nodiscard]] bool wait_until(Lock& lock, Time t, Predicate is_true) {
    return wait_for_true(lock, detail::deadline_at(t), is_true);
  }
  /// Returns false if the context was done first. If it was done before the call, the lock is not
  /// released.
  template <class Lock>
  [[nodiscard]] bool wait(const context& ctx, Lock& lock) {
    unlocked u(lock);
    return wait_unlocked(u, ctx);
  }
  /// Returns the predicate's last result, as std does with stop tokens: it may be true although the
  /// context is done.
  template <class Lock, std::predicate Predicate>
  [[nodiscard]] bool wait(const context& ctx, Lock& lock, Predicate is_true) {
    while (!is_true()) {
      if (!wait(ctx, lock)) return is_true();
    }
    return true;
  }

  /// Wakes the waiter that has waited longest, if any.
  void signal();
  /// Wakes all waiters.
  void broadcast();
  /// The same, by the names of std::condition_variable.
  void notify_one() { signal(); }
  void notify_all() { broadcast(); }

 private:
  // The lock as the library sees it. It is locked again at the end, however the wait ends.
  struct GOFER_API unlocked {
    template <class Lock>
    explicit unlocked(Lock& l)
        : lock(&l),
          release([](void* p) { static_cast<Lock*>(p)->unlock(); }),
          take([](void* p) { static_cast<Lock*>(p)->lock(); }) {}
    void* lock;
    void (*release)(void*);
    void (*take)(void*);
  };
  template <class Lock>
  bool wait_with(Lock& lock, std::int64_t deadline_ns) {
    unlocked u(lock);
    return wait_unlocked(u, deadline_ns);
  }
  template <class Lock, class Predicate>
  bool wait_for_true(Lock& lock, std::int64_t deadline_ns, Predicate& is_true) {
    while (!is_true()) {
      if (!wait_with(lock, deadline_ns)) return is_true();
    }
    return true;
  }
  bool wait_unlocked(const unlocked& u, std::int64_t deadline_ns);
  bool wait_unlocked(const unlocked& u, const context& ctx);
  bool wait_limited(const unlocked& u, const internal::WaitLimit& limit);

  detail::word<std::uint32_t> lock_{0};
  internal::WaitQueue queue_;
};

}  // namespace gofer
