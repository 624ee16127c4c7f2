// singleflight: many callers want the same thing at the same time, and one of them fetches it.
#pragma once

#include <gofer/chan.h>
#include <gofer/context.h>
#include <gofer/go.h>
#include <gofer/mutex.h>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

namespace gofer {

/// Calls with the same key that overlap in time share one execution and its result. T must be
/// copyable.
template <class Key, class T, class Compare = std::less<Key>>
class singleflight {
 public:
  /// Calls f and returns its result. Calls with the same key that arrive meanwhile wait for the
  /// result and share it. All of them get an exception of f. If f ends its goroutine by goexit(),
  /// the other callers get a std::runtime_error.
  template <class F>
  T run(const Key& key, F&& f) {
    return run(context(), key, std::forward<F>(f));
  }
  /// Waits for the execution of another caller at most until the context is done, and then throws
  /// its cause(). The context does not end f, because other callers may share its result: give f a
  /// context of its own, not that of the first caller.
  template <class F>
  T run(const context& ctx, const Key& key, F&& f) {
    ctx.throw_if_done();
    std::unique_lock lock(mutex_);
    if (auto found = flights_.find(key); found != flights_.end()) {
      const std::shared_ptr<flight> other = found->second;
      lock.unlock();
      wait_for(other->landed, ctx);
      if (other->error) std::rethrow_exception(other->error);
      return *other->value;
    }
    const auto mine = std::make_shared<flight>();
    const auto place = flights_.emplace(key, mine).first;
    lock.unlock();
    struct landing {  // goexit() lands too
      singleflight* self;
      flight* it;
      typename std::map<Key, std::shared_ptr<flight>, Compare>::iterator place;
      ~landing() {
        {
          std::lock_guard guard(self->mutex_);
          if (it->listed) self->flights_.erase(place);
        }
        if (!it->value && !it->error) {
          it->error = std::make_exception_ptr(std::runtime_error(
              "gofer::singleflight: the call that was shared ended by goexit()"));
        }
        it->landed.close();
      }
    } at_end{this, mine.get(), place};
    try {
      mine->value.emplace(std::invoke(std::forward<F>(f)));
    } catch (...) {
      if (detail::goroutine_exits()) throw;
      mine->error = std::current_exception();
      throw;
    }
    return *mine->value;
  }
  /// The next call with this key does not join an execution that is under way.
  void forget(const Key& key) {
    std::lock_guard guard(mutex_);
    if (auto found = flights_.find(key); found != flights_.end()) {
      found->second->listed = false;
      flights_.erase(found);
    }
  }

 private:
  struct flight {
    chan<std::monostate> landed{0};
    std::optional<T> value;
    std::exception_ptr error;
    bool listed = true;
  };
  static void wait_for(const chan<std::monostate>& landed, const context& ctx) {
    const recv_chan<std::monostate> done = ctx.done();
    if (!done) {
      landed.recv();
    } else if (select(on_recv(landed), on_recv(done)) == 1 && !landed.closed()) {
      ctx.throw_if_done();
    }
  }
  mutex mutex_;
  std::map<Key, std::shared_ptr<flight>, Compare> flights_;
};

}  // namespace gofer
