// once: a function that runs one time, in the first goroutine that calls it.
#pragma once

#include <gofer/context.h>
#include <gofer/mutex.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <type_traits>
#include <utility>

namespace gofer {

/// The first call runs f; other calls return when f has returned. As with std::call_once, an f that
/// throws does not count: its caller gets the exception, and the next call tries again.
class once {
 public:
  constexpr once() noexcept = default;
  once(const once&) = delete;
  once& operator=(const once&) = delete;

  template <class F, class... Args>
    requires std::is_invocable_v<F, Args...>
  void call(F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) return;
    std::lock_guard guard(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    done_.store(true, std::memory_order_release);
  }
  /// If another goroutine is running its function, waits for it, at most until the context is done.
  /// Returns false if the context was done first. The context does not end an f that is running.
  template <class F, class... Args>
    requires std::is_invocable_v<F, Args...>
  [[nodiscard]] bool call(const context& ctx, F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) return !detail::is_done(ctx);
    if (!mutex_.lock(ctx)) return false;
    std::lock_guard guard(mutex_, std::adopt_lock);
    if (done_.load(std::memory_order_relaxed)) return true;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    done_.store(true, std::memory_order_release);
    return true;
  }

 private:
  std::atomic<bool> done_{false};
  mutex mutex_;
};

/// The same with the names of std::call_once.
using once_flag = once;
template <class F, class... Args>
  requires std::is_invocable_v<F, Args...>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  flag.call(std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace gofer
