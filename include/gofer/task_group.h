// task_group: goroutines that belong together. The first failure cancels the others, and leaving
// the scope waits for all of them.
//
//   gofer::task_group tasks;
//   for (auto& url : urls) tasks.go([&] { fetch(tasks.ctx(), url); });
//   tasks.wait();                               // throws what the first of them threw
#pragma once

#include <gofer/context.h>
#include <gofer/detail/invoke.h>
#include <gofer/future.h>
#include <gofer/mutex.h>
#include <gofer/semaphore.h>
#include <gofer/wait_group.h>

#include <cstddef>
#include <exception>
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
  /// Runs at most `limit` of the group's goroutines at a time. A negative limit means none, as with
  /// errgroup's SetLimit.
  task_group(const context& parent, std::size_t limit) : task_group(parent) {
    const auto permits = static_cast<std::int64_t>(limit);
    if (permits >= 0) limit_ = std::make_unique<semaphore>(permits);
  }
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  /// If the scope is left by an exception, cancels the members that still run. Waits in any case.
  /// An error that wait() has not thrown is reported as one line on stderr, unless another
  /// exception leaves the scope.
  ~task_group() {
    const bool by_exception = std::uncaught_exceptions() > exceptions_;
    if (by_exception) cancel_();
    members_.wait();
    cancel_();
    if (error_ && !by_exception) detail::report_untaken(error_, "task_group");
  }

  /// Done when a member has failed, when wait() has returned, or when the parent is done.
  const context& ctx() const { return ctx_; }

  /// Starts a goroutine that calls f(args...), with copied or moved arguments. With a limit, waits
  /// for a free place.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  void go(F&& f, Args&&... args) {
    start_waiting(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
  }
  /// The same, with a name or a stack size: tasks.go({.name = "reader"}, f).
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  void go(const go_options& options, F&& f, Args&&... args) {
    start_waiting(&options, std::forward<F>(f), std::forward<Args>(args)...);
  }
  /// The same, but returns false and starts nothing if the context is done before there is a free
  /// place.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[nodiscard]] bool go(const context& ctx, F&& f, Args&&... args) {
    return start_in_time(ctx, nullptr, std::forward<F>(f), std::forward<Args>(args)...);
  }
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[nodiscard]] bool go(const context& ctx, const go_options& options, F&& f, Args&&... args) {
    return start_in_time(ctx, &options, std::forward<F>(f), std::forward<Args>(args)...);
  }
  /// The same, but returns false instead of waiting for a free place.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[nodiscard]] bool try_go(F&& f, Args&&... args) {
    return try_start(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
  }
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  [[nodiscard]] bool try_go(const go_options& options, F&& f, Args&&... args) {
    return try_start(&options, std::forward<F>(f), std::forward<Args>(args)...);
  }

  /// Waits for all members, cancels ctx(), and throws the exception of the first member that has
  /// failed since the last wait(). If several callers wait at the same time, all of them get it.
  /// The group may be used again; ctx() stays cancelled.
  void wait() {
    waiter self(*this);
    members_.wait();
    self.throw_error();
  }
  /// The same, but returns false if the context was done before all members had ended; they
  /// continue.
  [[nodiscard]] bool wait(const context& ctx) {
    waiter self(*this);
    if (!members_.wait(ctx)) return false;
    self.throw_error();
    return true;
  }

 private:
  // A call of wait(). The last such call to return clears an error that was thrown.
  class waiter {
   public:
    explicit waiter(task_group& group) : group_(group) {
      std::lock_guard guard(group_.mutex_);
      ++group_.waiters_;
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter() {
      std::lock_guard guard(group_.mutex_);
      if (--group_.waiters_ == 0 && std::exchange(group_.thrown_, false)) group_.error_ = nullptr;
    }
    void throw_error() {
      group_.cancel_();
      std::exception_ptr error;
      {
        std::lock_guard guard(group_.mutex_);
        error = group_.error_;
        group_.thrown_ = error != nullptr;
      }
      if (error) std::rethrow_exception(error);
    }

   private:
    task_group& group_;
  };
  permit_guard acquired() {
    return limit_ == nullptr ? permit_guard() : permit_guard(*limit_, std::adopt_lock);
  }
  template <class F, class... Args>
  void start_waiting(const go_options* options, F&& f, Args&&... args) {
    if (limit_ != nullptr) limit_->acquire();
    start(options, acquired(), std::forward<F>(f), std::forward<Args>(args)...);
  }
  template <class F, class... Args>
  bool start_in_time(const context& ctx, const go_options* options, F&& f, Args&&... args) {
    if (detail::is_done(ctx) || (limit_ != nullptr && !limit_->acquire(ctx))) return false;
    start(options, acquired(), std::forward<F>(f), std::forward<Args>(args)...);
    return true;
  }
  template <class F, class... Args>
  bool try_start(const go_options* options, F&& f, Args&&... args) {
    if (limit_ != nullptr && !limit_->try_acquire()) return false;
    start(options, acquired(), std::forward<F>(f), std::forward<Args>(args)...);
    return true;
  }
  // The place is given back however the member ends, or if it cannot be started.
  template <class F, class... Args>
  void start(const go_options* options, permit_guard place, F&& f, Args&&... args) {
    members_.start(options,
                   [this, place = std::move(place), f = std::decay_t<F>(std::forward<F>(f)),
                    ... args = std::decay_t<Args>(std::forward<Args>(args))]() mutable {
                     try {
                       detail::call(std::move(f), std::move(args)...);
                     } catch (...) {
                       if (detail::goroutine_exits()) throw;
                       fail(std::current_exception());
                     }
                   });
  }
  void fail(std::exception_ptr error) {
    {
      std::lock_guard guard(mutex_);
      if (error_ && !std::exchange(thrown_, false)) return;
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
  bool thrown_ = false;      // error_, by a wait() while another one has yet to return
  std::size_t waiters_ = 0;  // calls of wait()
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace gofer
