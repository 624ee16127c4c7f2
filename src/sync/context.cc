// Contexts: a tree of states, each with a done channel and the list of who must know.
//
// A state that can be cancelled registers with the nearest one above that can; cancelling takes the
// list of children under the lock and cancels them after it, parents first. Values form a chain of
// their own. A child holds its parent; a parent only knows its children until they end.
#include <gofer/context.h>
#include <gofer/go.h>
#include <gofer/mutex.h>
#include <gofer/timer.h>

#include <list>
#include <mutex>

#include "sync/limit.h"

namespace gofer {

namespace detail {

struct context_state : std::enable_shared_from_this<context_state> {
  using states = std::list<std::weak_ptr<context_state>>;
  using functions = std::list<std::function<void()>>;

  std::shared_ptr<context_state> parent;     // for values, and to keep it alive
  std::shared_ptr<context_state> canceller;  // the nearest above that can be cancelled
  const void* key = nullptr;
  std::any value;
  chan<std::monostate> done;  // nil: this one is never done by itself
  std::int64_t deadline_ns = no_deadline;
  std::optional<timer> limit;
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  std::stop_source stops{std::nostopstate};

  mutex lock;
  std::error_code err;
  std::exception_ptr cause;
  states children;
  functions after;
  states::iterator place;  // in the canceller's children
  bool placed = false;

  ~context_state() {
    if (limit) limit->stop();
    leave();
  }

  void leave() {
    if (!placed) return;
    std::lock_guard guard(canceller->lock);
    if (std::exchange(placed, false)) canceller->children.erase(place);
  }

  static context make(std::shared_ptr<context_state> state) { return context(std::move(state)); }
  static cancel_func make_cancel(std::shared_ptr<context_state> state) {
    return cancel_func(std::move(state));
  }
  static const std::shared_ptr<context_state>& of(const context& ctx) { return ctx.state_; }

  static std::shared_ptr<context_state> derive(const context& parent) {
    auto state = std::make_shared<context_state>();
    state->parent = of(parent);
    if (state->parent != nullptr) {
      state->canceller = state->parent->done ? state->parent : state->parent->canceller;
      state->deadline_ns = state->parent->deadline_ns;
    }
    return state;
  }

  // From now on the state can be cancelled, and is when who is above it is.
  void attach() {
    done = chan<std::monostate>(0);
    if (canceller == nullptr) return;
    std::unique_lock guard(canceller->lock);
    if (canceller->err) {
      const std::error_code above = canceller->err;
      const std::exception_ptr why = canceller->cause;
      guard.unlock();
      cancel(above, why);
      return;
    }
    place = canceller->children.insert(canceller->children.end(), weak_from_this());
    placed = true;
  }

  void cancel(std::error_code code, std::exception_ptr why) {
    functions to_call;
    std::list<std::shared_ptr<context_state>> below;
    {
      std::lock_guard guard(lock);
      if (err) return;
      err = code;
      cause = why ? why : std::make_exception_ptr(std::system_error(code));
      why = cause;
      to_call.swap(after);
      for (auto& child : children) {
        if (auto alive = child.lock()) below.push_back(std::move(alive));
      }
    }
    done.close();
    if (limit) limit->stop();
    stops.request_stop();
    for (auto& f : to_call) go(std::move(f));
    for (auto& child : below) child->cancel(code, why);
  }
};

cancellable with_deadline_ns(const context& parent, std::int64_t deadline_ns) {
  auto state = context_state::derive(parent);
  const bool earlier = deadline_ns < state->deadline_ns;
  if (earlier) state->deadline_ns = deadline_ns;
  state->attach();
  const auto timed_out = std::make_error_code(std::errc::timed_out);
  if (earlier && deadline_ns <= now_ns()) {
    state->cancel(timed_out, nullptr);
  } else if (earlier && deadline_ns != no_deadline) {
    const std::chrono::nanoseconds left(deadline_ns - now_ns());
    std::weak_ptr<context_state> weak = state;
    timer limit = after_func(left, [weak, timed_out] {
      if (auto alive = weak.lock()) alive->cancel(timed_out, nullptr);
    });
    std::lock_guard guard(state->lock);
    if (!state->err) {
      state->limit.emplace(std::move(limit));
    } else {
      limit.stop();
    }
  }
  return {context_state::make(state), context_state::make_cancel(state)};
}

context with_any(const context& parent, const void* key, std::any value) {
  auto state = context_state::derive(parent);
  state->key = key;
  state->value = std::move(value);
  return context_state::make(state);
}

}  // namespace detail

using detail::context_state;

namespace {

const context_state* canceller_of(const context_state* state) {
  if (state == nullptr || state->done) return state;
  return state->canceller.get();
}

}  // namespace

recv_chan<std::monostate> context::done() const {
  const context_state* c = canceller_of(state_.get());
  return c == nullptr ? recv_chan<std::monostate>() : recv_chan<std::monostate>(c->done);
}

std::error_code context::err() const {
  auto* c = const_cast<context_state*>(canceller_of(state_.get()));
  if (c == nullptr) return {};
  std::lock_guard guard(c->lock);
  return c->err;
}

std::exception_ptr context::cause() const {
  auto* c = const_cast<context_state*>(canceller_of(state_.get()));
  if (c == nullptr) return nullptr;
  std::lock_guard guard(c->lock);
  return c->cause;
}

std::optional<std::chrono::steady_clock::time_point> context::deadline() const {
  if (state_ == nullptr || state_->deadline_ns == detail::no_deadline) return std::nullopt;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(state_->deadline_ns));
}

const std::any* context::find(const void* key) const {
  for (const context_state* s = state_.get(); s != nullptr; s = s->parent.get()) {
    if (s->key == key) return &s->value;
  }
  return nullptr;
}

std::stop_token context::stop_token() const {
  auto* c = const_cast<context_state*>(canceller_of(state_.get()));
  if (c == nullptr) return {};
  std::lock_guard guard(c->lock);
  if (!c->stops.stop_possible()) c->stops = std::stop_source();
  if (c->err) c->stops.request_stop();
  return c->stops.get_token();
}

void cancel_func::operator()(std::exception_ptr cause) const {
  if (state_ == nullptr) return;
  state_->cancel(std::make_error_code(std::errc::operation_canceled), std::move(cause));
}

cancellable with_cancel(const context& parent) {
  auto state = context_state::derive(parent);
  state->attach();
  return {context_state::make(state), context_state::make_cancel(state)};
}

context without_cancel(const context& parent) {
  auto state = context_state::derive(parent);
  state->canceller = nullptr;
  state->deadline_ns = detail::no_deadline;
  return context_state::make(state);
}

context with_stop_token(const context& parent, std::stop_token token) {
  auto state = context_state::derive(parent);
  state->attach();
  std::weak_ptr<context_state> weak = state;
  state->on_stop.emplace(std::move(token), [weak] {
    if (auto alive = weak.lock()) {
      alive->cancel(std::make_error_code(std::errc::operation_canceled), nullptr);
    }
  });
  return context_state::make(state);
}

std::function<bool()> after_func(const context& ctx, std::function<void()> f) {
  const auto& state = context_state::of(ctx);
  if (canceller_of(state.get()) == nullptr) return [] { return true; };
  std::shared_ptr<context_state> c = state->done ? state : state->canceller;
  std::unique_lock guard(c->lock);
  if (c->err) {
    guard.unlock();
    go(std::move(f));
    return [] { return false; };
  }
  auto stopped = std::make_shared<bool>(false);
  auto place = c->after.insert(c->after.end(), std::move(f));
  return [c, place, stopped] {
    std::lock_guard lock(c->lock);
    if (c->err || *stopped) return false;
    c->after.erase(place);
    *stopped = true;
    return true;
  };
}

namespace internal {

WaitLimit until_done(const context& ctx) {
  const context_state* c = canceller_of(context_state::of(ctx).get());
  return {no_deadline, c == nullptr ? nullptr : c->done.core()};
}

}  // namespace internal

}  // namespace gofer
