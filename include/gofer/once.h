// once: something that happens one time, whoever comes first.
#pragma once

#include <gofer/mutex.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace gofer {

/// The first call runs f; the others return when that is over. As with std::call_once, an f that
/// throws has not happened: the exception reaches its caller, and the next call tries again.
class once {
 public:
  constexpr once() noexcept = default;
  once(const once&) = delete;
  once& operator=(const once&) = delete;

  template <class F, class... Args>
  void call(F&& f, Args&&... args) {
    if (done_.load(std::memory_order_acquire)) return;
    std::lock_guard guard(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  mutex mutex_;
};

}  // namespace gofer
