// rw_mutex: many readers or one writer; std::shared_lock and std::unique_lock take it.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>
#include <gofer/detail/word.h>

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
    return state_.compare_exchange_strong(now, writer, detail::order::acquire,
                                          detail::order::relaxed) ||
           ((now & biased) != 0 && lock_until(0));
  }
  template <detail::duration_like D>
  [[nodiscard]] bool try_lock_for(D d) {
    return try_lock() || lock_until(detail::deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool try_lock_until(Time t) {
    return try_lock() || lock_until(detail::deadline_at(t));
  }
  /// Returns false if the context was done first.
  [[nodiscard]] bool lock(const context& ctx);
  /// "sync: Unlock of unlocked RWMutex" is a fatal error.
  void unlock() {
    std::uint64_t expected = writer;
    if (!state_.compare_exchange_strong(expected, 0, detail::order::release,
                                        detail::order::relaxed)) {
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
      if (state_.compare_exchange_weak(now, now + reader, detail::order::acquire,
                                       detail::order::relaxed)) {
        if (tries > 1) met_others(now);
        return true;
      }
    }
    return false;
  }
  template <detail::duration_like D>
  [[nodiscard]] bool try_lock_shared_for(D d) {
    return try_lock_shared() || lock_shared_until(detail::deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool try_lock_shared_until(Time t) {
    return try_lock_shared() || lock_shared_until(detail::deadline_at(t));
  }
  [[nodiscard]] bool lock_shared(const context& ctx);
  /// "sync: RUnlock of unlocked RWMutex" is a fatal error.
  void unlock_shared() {
    if (uses_table() && leave_table()) return;
    std::uint64_t now = guess() + reader;
    while (now >= reader && (now & (busy | writers)) == 0) {
      if (state_.compare_exchange_weak(now, now - reader, detail::order::release,
                                       detail::order::relaxed)) {
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
  std::uint64_t guess() const noexcept { return inside_.load(detail::order::relaxed) * reader; }
  // A hint; `biased` decides.
  bool uses_table() const noexcept {
    return leaning_.load(detail::order::relaxed) >= leaning_enough;
  }
  bool enter_table() noexcept;
  bool leave_table() noexcept;
  void met_others(std::uint64_t now) noexcept;
  std::uint64_t end_bias(std::uint64_t now);

  bool lock_until(std::int64_t deadline_ns);
  bool lock_shared_until(std::int64_t deadline_ns);
  bool acquire(const internal::WaitLimit& limit, bool shared);
  void unlock_slow();
  void unlock_shared_slow();
  std::uint64_t admit(std::uint64_t now, bool readers_first, internal::Waiter*& list);
  static void unbusy(void* self);

  detail::word<std::uint64_t> state_{0};
  detail::word<std::int32_t> leaning_{0};   // readers that met others in the word...
  detail::word<std::uint32_t> inside_{0};   // how many there were when one did
  detail::word<std::int64_t> since_ns_{0};  // ...since then
  internal::WaitQueue waiting_readers_;
  internal::WaitQueue waiting_writers_;
};

}  // namespace gofer
