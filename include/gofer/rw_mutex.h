// rw_mutex: many readers or one writer; std::shared_lock and std::unique_lock take it.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gofer {

class context;

/// As in Go, a waiting writer keeps new readers out, and the readers that have gathered behind a
/// writer all come before the next writer, so neither side starves. Therefore a goroutine that
/// holds a read lock must not take another one: it could wait for a writer that waits for it.
/// SharedTimedLockable.
///
/// If readers on several threads often compete for the common count, they stop using it and then
/// read in parallel at full speed. The next writer then takes a microsecond longer.
class GOFER_API rw_mutex {
 public:
  constexpr rw_mutex() noexcept = default;
  rw_mutex(const rw_mutex&) = delete;
  rw_mutex& operator=(const rw_mutex&) = delete;

  void lock() {
    if (!try_lock()) lock_until(detail::no_deadline);
  }
  [[nodiscard]] bool try_lock() noexcept {
    std::uint64_t now = 0;
    return state_.compare_exchange_strong(now, writer, std::memory_order_acquire,
                                          std::memory_order_relaxed) ||
           ((now & biased) != 0 && lock_until(0));
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> d) {
    return try_lock() || lock_until(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> t) {
    return try_lock() || lock_until(detail::deadline_at(t));
  }
  /// Returns false if the context was done first.
  [[nodiscard]] bool lock(const context& ctx);
  /// "sync: Unlock of unlocked RWMutex" is a fatal error.
  void unlock() {
    std::uint64_t expected = writer;
    if (!state_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      unlock_slow();
    }
  }

  void lock_shared() {
    if (!try_lock_shared()) lock_shared_until(detail::no_deadline);
  }
  [[nodiscard]] bool try_lock_shared() noexcept {
    if (uses_table() && enter_table()) return true;
    std::uint64_t now = guess();
    for (int tries = 1; (now & (writer | busy | writers)) == 0; ++tries) {
      if (state_.compare_exchange_weak(now, now + reader, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        if (tries > 1) met_others(now);
        return true;
      }
    }
    return false;
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> d) {
    return try_lock_shared() || lock_shared_until(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> t) {
    return try_lock_shared() || lock_shared_until(detail::deadline_at(t));
  }
  [[nodiscard]] bool lock_shared(const context& ctx);
  /// "sync: RUnlock of unlocked RWMutex" is a fatal error.
  void unlock_shared() {
    if (uses_table() && leave_table()) return;
    std::uint64_t now = guess() + reader;
    while (now >= reader && (now & (busy | writers)) == 0) {
      if (state_.compare_exchange_weak(now, now - reader, std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
    }
    unlock_shared_slow();
  }

 private:
  static constexpr std::uint64_t writer = 1;   // a writer holds it
  static constexpr std::uint64_t busy = 2;     // the queues are being changed
  static constexpr std::uint64_t writers = 4;  // writers wait
  static constexpr std::uint64_t readers = 8;  // readers wait
  static constexpr std::uint64_t biased = 16;  // readers are in the table; no writer, none waits
  static constexpr std::uint64_t reader = 256;
  // Ending the bias costs a writer as much as some tens of colliding readers lose.
  static constexpr std::int32_t leaning_enough = 64;

  // A guess of the word. It is sometimes wrong, but loading the word just after it was written
  // would cost more than that.
  std::uint64_t guess() const noexcept { return inside_.load(std::memory_order_relaxed) * reader; }
  // A hint; `biased` decides.
  bool uses_table() const noexcept {
    return leaning_.load(std::memory_order_relaxed) >= leaning_enough;
  }
  bool enter_table() noexcept;
  bool leave_table() noexcept;
  void met_others(std::uint64_t now) noexcept;
  std::uint64_t end_bias(std::uint64_t now);

  bool lock_until(std::int64_t deadline_ns);
  bool lock_shared_until(std::int64_t deadline_ns);
  bool acquire(const void* limit, bool shared);
  void unlock_slow();
  void unlock_shared_slow();
  std::uint64_t admit(std::uint64_t now, bool readers_first, internal::Waiter*& list);
  static bool unbusy(internal::G* g, void* self);

  std::atomic<std::uint64_t> state_{0};
  std::atomic<std::int32_t> leaning_{0};   // readers that met others in the word...
  std::atomic<std::uint32_t> inside_{0};   // how many there were when one did
  std::atomic<std::int64_t> since_ns_{0};  // ...since then
  internal::WaitQueue waiting_readers_;
  internal::WaitQueue waiting_writers_;
};

}  // namespace gofer
