// singleflight: many callers want the same thing at the same time, and one of them fetches it.
#pragma once

#include <gofer/chan.h>
#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/spawn.h>
#include <gofer/mutex.h>
#include <gofer/select.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#ifndef __GLIBCXX__  // whose <memory> has std::less
#include <functional>
#endif

namespace gofer {

namespace detail {

/// A std::map from keys to values that belong to the caller.
class GOFER_API key_table {
 public:
  explicit key_table(bool (*less)(const void* a, const void* b));
  key_table(const key_table&) = delete;
  key_table& operator=(const key_table&) = delete;
  ~key_table();
  /// Returns nullptr if there is no such key.
  void* find(const void* key) const;
  void insert(const void* key, void* value);
  void erase(const void* key);

 private:
  struct tree;
  const std::unique_ptr<tree> tree_;
};

/// The exception of the callers that wait for a function which ends by goexit().
GOFER_API std::exception_ptr ended_by_goexit();

}  // namespace detail

/// Calls with the same key that overlap in time share one execution and its result. T must be
/// copyable.
template <class Key, class T, class Compare = std::less<Key>>
class singleflight {
 public:
  singleflight()
      : flights_([](const void* a, const void* b) {
          return static_cast<bool>(
              Compare()(*static_cast<const Key*>(a), *static_cast<const Key*>(b)));
        }) {}

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
    const auto [it, is_mine] = join(key);
    if (!is_mine) {
      wait_for(it->landed, ctx);
      if (it->error) std::rethrow_exception(it->error);
      return *it->value;
    }
    struct landing {  // goexit() lands too
      singleflight* self;
      flight* it;
      ~landing() {
        self->unlist(it);
        if (!it->value && !it->error) it->error = detail::ended_by_goexit();
        it->landed.close();
      }
    } at_end{this, it.get()};
    try {
      it->value.emplace(detail::call(std::forward<F>(f)));
    } catch (...) {
      if (detail::goroutine_exits()) throw;
      it->error = std::current_exception();
      throw;
    }
    return *it->value;
  }
  /// The next call with this key does not join an execution that is under way.
  void forget(const Key& key) {
    const holder hold(mutex_);
    if (void* const found = flights_.find(&key); found != nullptr) {
      static_cast<flight*>(found)->listed = false;
      flights_.erase(&key);
    }
  }

 private:
  // In the table until it lands or is forgotten; its caller keeps it so long.
  struct flight : std::enable_shared_from_this<flight> {
    explicit flight(const Key& k) : key(k) {}
    const Key key;
    chan<std::monostate> landed{0};
    std::optional<T> value;
    std::exception_ptr error;
    bool listed = true;
  };
  struct joined {
    std::shared_ptr<flight> it;
    bool is_mine;
  };
  class holder {
   public:
    explicit holder(mutex& m) : mutex_(m) { m.lock(); }
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() { mutex_.unlock(); }

   private:
    mutex& mutex_;
  };

  joined join(const Key& key) {
    const holder hold(mutex_);
    if (void* const found = flights_.find(&key); found != nullptr) {
      return {static_cast<flight*>(found)->shared_from_this(), false};
    }
    auto mine = std::make_shared<flight>(key);
    flights_.insert(&mine->key, mine.get());
    return {std::move(mine), true};
  }
  void unlist(flight* it) {
    const holder hold(mutex_);
    if (it->listed) flights_.erase(&it->key);
  }
  static void wait_for(const chan<std::monostate>& landed, const context& ctx) {
    const recv_chan<std::monostate> done = ctx.done();
    if (!done) {
      landed.recv();
    } else if (select(on_recv(landed), on_recv(done)) == 1 && !landed.closed()) {
      ctx.throw_if_done();
    }
  }

  mutex mutex_;
  detail::key_table flights_;
};

}  // namespace gofer
