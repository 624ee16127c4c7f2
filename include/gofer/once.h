// once: a function that runs one time, in the first goroutine that calls it.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/word.h>
#include <gofer/mutex.h>

#include <type_traits>
#include <utility>

namespace gofer {

class context;

namespace detail {
GOFER_API bool is_done(const context& ctx) noexcept;
}

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
    if (done_.load(detail::order::acquire)) return;
    mutex_.lock();
    const unlock_at_end guard{mutex_};
    if (done_.load(detail::order::relaxed)) return;
    detail::call(std::forward<F>(f), std::forward<Args>(args)...);
    done_.store(true, detail::order::release);
  }
  /// If another goroutine is running its function, waits for it, at most until the context is done.
  /// Returns false if the context was done first. The context does not end an f that is running.
  template <class F, class... Args>
    requires std::is_invocable_v<F, Args...>
  [[nodiscard]] bool call(const context& ctx, F&& f, Args&&... args) {
    if (done_.load(detail::order::acquire)) return !detail::is_done(ctx);
    if (!mutex_.lock(ctx)) return false;
    const unlock_at_end guard{mutex_};
    if (done_.load(detail::order::relaxed)) return true;
    detail::call(std::forward<F>(f), std::forward<Args>(args)...);
    done_.store(true, detail::order::release);
    return true;
  }

 private:
  struct unlock_at_end {
    mutex& held;
    ~unlock_at_end() { held.unlock(); }
  };
  detail::word<bool> done_{false};
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
