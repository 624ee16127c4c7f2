// word: std::atomic, as far as the public headers need it. With g++ 12 <atomic> is 24,000 lines,
// because it brings in std::mutex, std::string and hashing: each user of a mutex would pay for it.
#pragma once

#include <gofer/detail/config.h>

namespace gofer::detail {

enum class order : int {
  relaxed = __ATOMIC_RELAXED,
  acquire = __ATOMIC_ACQUIRE,
  release = __ATOMIC_RELEASE,
  acq_rel = __ATOMIC_ACQ_REL,
  seq_cst = __ATOMIC_SEQ_CST,
};

/// A value that goroutines and threads share: at most 8 bytes, which the processor reads and writes
/// at once. An Order is one of those above, or a std::memory_order, which has the same values (the
/// library checks this when it is compiled).
template <class T>
class word {
  static_assert(__atomic_always_lock_free(sizeof(T), nullptr));

 public:
  constexpr word() noexcept = default;
  constexpr word(T value) noexcept : value_(value) {}
  word(const word&) = delete;
  word& operator=(const word&) = delete;

  template <class Order>
  [[gnu::always_inline]] T load(Order o) const noexcept {
    return __atomic_load_n(&value_, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] void store(T value, Order o) noexcept {
    __atomic_store_n(&value_, value, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] T exchange(T value, Order o) noexcept {
    return __atomic_exchange_n(&value_, value, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] T fetch_add(T value, Order o) noexcept {
    return __atomic_fetch_add(&value_, value, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] T fetch_sub(T value, Order o) noexcept {
    return __atomic_fetch_sub(&value_, value, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] T fetch_or(T value, Order o) noexcept {
    return __atomic_fetch_or(&value_, value, static_cast<int>(o));
  }
  template <class Order>
  [[gnu::always_inline]] T fetch_and(T value, Order o) noexcept {
    return __atomic_fetch_and(&value_, value, static_cast<int>(o));
  }
  template <class Success, class Failure>
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired, Success s,
                                                    Failure f) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, desired, true, static_cast<int>(s),
                                       static_cast<int>(f));
  }
  template <class Success, class Failure>
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, Success s,
                                                      Failure f) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, desired, false, static_cast<int>(s),
                                       static_cast<int>(f));
  }

 private:
  alignas(sizeof(T)) T value_{};
};

}  // namespace gofer::detail
