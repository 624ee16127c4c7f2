// task_group: goroutines that belong together. The first failure cancels the others, and leaving
// the scope waits for all of them.
//
//   gofer::task_group tasks;
//   for (auto& url : urls) tasks.go([&] { fetch(tasks.ctx(), url); });
//   tasks.wait();                               // throws what the first of them threw
#pragma once

#include <gofer/context.h>
#include <gofer/mutex.h>
#include <gofer/semaphore.h>
#include <gofer/wait_group.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace gofer {

/// Go's errgroup, with exceptions for errors.
class task_group {
 public:
  explicit task_group(const context& parent = background()) {
    auto [ctx, cancel] = with_cancel(parent);
    ctx_ = std::move(ctx);
    cancel_ = std::move(cancel);
  }
  /// At most `limit` of the group's goroutines at a time.
  task_group(const context& parent, std::size_t limit) : task_group(parent) {
    limit_ = std::make_unique<semaphore>(static_cast<std::int64_t>(limit));
  }
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  /// Cancels what still runs if the scope is left by an exception, and waits in any case. An error
  /// that was not taken by wait() is lost.
  ~task_group() {
    if (std::uncaught_exceptions() > exceptions_) cancel_();
    members_.wait();
    cancel_();
  }

  /// Done when a member has failed, when wait() has returned, or with the parent.
  const context& ctx() const { return ctx_; }

  /// Starts a goroutine that calls f(); f may be move-only. With a limit, waits for a free place.
  template <class F>
    requires std::is_invocable_v < std::decay_t<F>
  & > void go(F&& f) {
    if (limit_ != nullptr) limit_->acquire();
    start(std::forward<F>(f));
  }
  /// The same, but false instead of waiting for a free place.
  template <class F>
    requires std::is_invocable_v < std::decay_t<F>
  & > bool try_go(F&& f) {
    if (limit_ != nullptr && !limit_->try_acquire()) return false;
    start(std::forward<F>(f));
    return true;
  }

  /// Waits for all members, cancels ctx(), and throws what the first that failed threw since the
  /// last wait(). The group may be used again; ctx() stays cancelled.
  void wait() {
    members_.wait();
    cancel_();
    std::exception_ptr error;
    {
      std::lock_guard guard(mutex_);
      error = std::exchange(error_, nullptr);
    }
    if (error) std::rethrow_exception(error);
  }

 private:
  template <class F>
  void start(F&& f) {
    struct place {  // given back however the member ends, or if it cannot be started
      semaphore* limit;
      explicit place(semaphore* s) : limit(s) {}
      place(place&& other) noexcept : limit(std::exchange(other.limit, nullptr)) {}
      ~place() {
        if (limit != nullptr) limit->release();
      }
    };
    members_.go(
        [this, taken = place(limit_.get()), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
          try {
            std::invoke(f);
          } catch (...) {
            if (detail::goroutine_exits()) throw;
            fail(std::current_exception());
          }
        });
  }
  void fail(std::exception_ptr error) {
    {
      std::lock_guard guard(mutex_);
      if (error_) return;
      error_ = error;
    }
    cancel_(error);
  }

  context ctx_;
  cancel_func cancel_;
  std::unique_ptr<semaphore> limit_;
  wait_group members_;
  mutex mutex_;
  std::exception_ptr error_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace gofer
