// Contexts: what handles carry, and how a context ends.
//
// Handles count references to a context_state. It has the deadline, a value, and the way up to
// other values. It refers to a cancel_node, its own or the nearest one above. The node is the part
// that can be cancelled: it has the done channel and the list of those that must be told.
//
// Cancelling. The lock of a node is held until the node's error is set, its channel is closed and
// all nodes below it are cancelled, too. The lock of a child is taken under the lock of its parent.
// So no caller sees err() before done() is closed, and a second cancel() returns only when the
// first has reached all children. User code (callbacks of stop tokens, destructors) runs after all
// locks are released, so it may ask the same context. The walk through the tree uses links in the
// nodes, not the stack, because a chain of contexts may be long.
//
// Lifetime. A node must live while it can end and its end would be noticed: by a holder of its done
// channel, a function of after_func, a stop token, or a child. Its handles, its parent's list and
// the function of its timer own it, so the parent's cancel or the deadline reaches it even if no
// handle is left. References upwards are weak, so there is only one cycle, that of a node and its
// timer, and it ends with the timer. When the last handle goes and the end would not be noticed
// (`drop`), the node leaves its parent and stops its timer. A parent without handles does the same
// when its last child has left. A node whose end would be noticed at that time is kept until it
// ends, or until nothing is left that could end it. Rejected: a parent that refers to its children
// weakly, because then a context would die with its handles and its channel would never be closed.
//
// A node of done_with_either() also ends with a second context. A function there owns it, as the
// function of a timer does, and is taken back in the same places.
#include <gofer/context.h>
#include <gofer/go.h>
#include <gofer/mutex.h>
#include <gofer/timer.h>

#include <atomic>
#include <list>
#include <mutex>

#include "runtime/base/debug_table.h"
#include "runtime/procs/current.h"
#include "sync/chan.h"
#include "sync/until_done.h"

namespace gofer {

namespace detail {
namespace {

struct cancel_node : std::enable_shared_from_this<cancel_node> {
  using nodes = std::list<std::shared_ptr<cancel_node>>;
  using functions = std::list<shared_function<void()>>;

  const chan<std::monostate> done{0};
  std::weak_ptr<cancel_node> above;
  bool has_token = false;
  std::stop_token token;
  std::optional<std::stop_callback<shared_function<void()>>> on_stop;

  mutex lock;  // for the members that follow
  std::error_code err;
  std::exception_ptr cause;
  nodes children;
  functions after;
  std::optional<timer> limit;
  shared_function<bool()> leave_other;  // done_with_either: takes this node out of the other one
  std::stop_source stops{std::nostopstate};
  bool dropped = false;  // no handle is left

  // Under the lock of the node above.
  nodes::iterator place;  // in that node's children
  bool placed = false;

  // For the caller that cancels: first the way up, then the list of nodes that have to tell others.
  std::shared_ptr<cancel_node> link;

  // True if the end of that node, or of none, ends this one as well.
  bool ends_with(const std::shared_ptr<cancel_node>& node) const {
    if (node == nullptr || node.get() == this) return true;
    for (std::shared_ptr<cancel_node> up = above.lock(); up != nullptr; up = up->above.lock()) {
      if (up == node) return true;
    }
    return false;
  }

  // With the lock. No one would notice the end of this node.
  bool unnoticed() const {
    return children.empty() && after.empty() && !stops.stop_possible() &&
           done.core()->refs.load(internal::acquire) == 1;
  }
  // With the lock. This node need not exist any more.
  bool is_idle() const { return dropped && !err && unnoticed(); }

  // From now on this node is cancelled with the node above.
  void attach(const std::shared_ptr<cancel_node>& to) {
    above = to;
    std::unique_lock guard(to->lock);
    if (to->err) {
      const std::error_code code = to->err;
      const std::exception_ptr why = to->cause;
      guard.unlock();
      cancel(code, why);
      return;
    }
    place = to->children.insert(to->children.end(), shared_from_this());
    placed = true;
  }

  void cancel(std::error_code code, std::exception_ptr why) {
    std::shared_ptr<cancel_node> ended = cancel_tree(code, std::move(why));
    if (ended == nullptr) return;
    leave();
    while (ended != nullptr) {
      ended->tell();
      ended = std::exchange(ended->link, nullptr);
    }
  }

  void drop();
  void leave_if_idle();
  void leave_other_ends();

 private:
  // Takes the lock and returns true, unless the node is cancelled already.
  bool begin_cancel(std::error_code code, const std::exception_ptr& why) {
    lock.lock();
    if (err) {
      lock.unlock();
      return false;
    }
    err = code;
    cause = why ? why : std::make_exception_ptr(std::system_error(code));
    done.close();
    return true;
  }

  // Cancels this node and all nodes below it, parents first. Returns the nodes that it has
  // cancelled as a list.
  std::shared_ptr<cancel_node> cancel_tree(std::error_code code, std::exception_ptr why) {
    if (!begin_cancel(code, why)) return nullptr;
    why = cause;
    std::shared_ptr<cancel_node> ended;
    std::shared_ptr<cancel_node> at = shared_from_this();
    while (at != nullptr) {
      if (!at->children.empty()) {
        std::shared_ptr<cancel_node> child = std::move(at->children.front());
        at->children.pop_front();
        child->placed = false;
        if (!child->begin_cancel(code, why)) continue;
        child->link = std::move(at);
        at = std::move(child);
        continue;
      }
      at->lock.unlock();
      std::shared_ptr<cancel_node> up = std::move(at->link);
      at->link = std::move(ended);
      ended = std::move(at);
      at = std::move(up);
    }
    return ended;
  }

  void leave();

  // Tells those that wait for the end of this node. After the end, without any lock.
  void tell() noexcept {
    functions to_call;
    std::stop_source to_stop(std::nostopstate);
    {
      std::lock_guard guard(lock);
      to_call.swap(after);
      to_stop = stops;
    }
    leave_other_ends();
    to_stop.request_stop();
    for (auto& f : to_call) {
      try {
        go(f);
      } catch (const std::bad_alloc&) {
        f();  // it must be called, and there is no memory for a goroutine
      }
    }
  }

  void keep();
  void forget();
  nodes::iterator kept_at;  // in the list of orphans, under its lock
  bool is_kept = false;
};

// Nodes without handles that end with a std::stop_token, which owns nothing. A token does not tell
// when it cannot be stopped any more. So each time that a node is added, all nodes are checked.
struct orphan_nodes {
  mutex lock;
  cancel_node::nodes list;
};

orphan_nodes& orphans() {
  // Never destroyed, because contexts end during exit, too.
  static auto* const nodes = new orphan_nodes;
  return *nodes;
}

void cancel_node::keep() {
  nodes gone;
  std::lock_guard guard(orphans().lock);
  kept_at = orphans().list.insert(orphans().list.end(), shared_from_this());
  is_kept = true;
  for (auto at = orphans().list.begin(); at != orphans().list.end();) {
    cancel_node& node = **at++;
    std::lock_guard node_guard(node.lock);
    if (!node.err && !node.unnoticed() && node.token.stop_possible()) continue;
    node.is_kept = false;
    gone.splice(gone.end(), orphans().list, node.kept_at);
  }
}

void cancel_node::forget() {
  if (!has_token) return;
  nodes gone;
  std::lock_guard guard(orphans().lock);
  if (std::exchange(is_kept, false)) gone.splice(gone.end(), orphans().list, kept_at);
}

// What else than the node above could have ended this node knows it no longer.
void cancel_node::leave_other_ends() {
  std::optional<timer> stopped;
  shared_function<bool()> leave;
  {
    std::lock_guard guard(lock);
    stopped.swap(limit);
    std::swap(leave, leave_other);
  }
  if (stopped) stopped->stop();
  if (leave) leave();
  forget();
}

// Takes this node out of the list of the node above, and does the same for nodes further up that
// are not needed any more.
void cancel_node::leave() {
  std::shared_ptr<cancel_node> at = shared_from_this();
  while (const std::shared_ptr<cancel_node> up = at->above.lock()) {
    nodes gone;
    bool idle = false;
    {
      std::lock_guard guard(up->lock);
      if (!std::exchange(at->placed, false)) return;
      gone.splice(gone.end(), up->children, at->place);
      idle = up->is_idle();
    }
    if (!idle) return;
    up->leave_other_ends();
    at = up;
  }
}

void cancel_node::leave_if_idle() {
  bool idle = false;
  {
    std::lock_guard guard(lock);
    idle = is_idle();
  }
  if (!idle) return;
  leave_other_ends();
  leave();
}

// For the last handle.
void cancel_node::drop() {
  bool keeps = false;
  {
    std::lock_guard guard(lock);
    dropped = true;
    keeps = has_token && !err && !unnoticed();
  }
  if (keeps) {
    keep();
  } else {
    leave_if_idle();
  }
}

}  // namespace

struct context_state {
  std::shared_ptr<context_state> parent;  // for values; it also counts as a handle of the parent
  std::shared_ptr<cancel_node> node;      // nullptr: never done
  bool owns_node = false;
  const void* key = nullptr;
  std::any value;
  std::int64_t deadline_ns = no_deadline;

  ~context_state() {
    if (owns_node) node->drop();
  }

  static context make(std::shared_ptr<context_state> state) { return context(std::move(state)); }
  static cancellable make_both(const std::shared_ptr<context_state>& state) {
    return {context(state), cancel_func(state)};
  }
  static const std::shared_ptr<context_state>& of(const context& ctx) { return ctx.state_; }

  static std::shared_ptr<context_state> derive(const context& parent) {
    auto state = std::make_shared<context_state>();
    state->parent = of(parent);
    if (state->parent != nullptr) {
      state->node = state->parent->node;
      state->deadline_ns = state->parent->deadline_ns;
    }
    return state;
  }

  // Like derive(), with a node of its own, so that it can be cancelled by itself.
  static std::shared_ptr<context_state> derive_cancellable(const context& parent,
                                                           const std::stop_token* token = nullptr) {
    auto state = derive(parent);
    auto node = std::make_shared<cancel_node>();
    if (token != nullptr) {  // set before the parent knows the node and may cancel it
      node->has_token = true;
      node->token = *token;
    }
    if (state->node != nullptr) node->attach(state->node);
    state->node = std::move(node);
    state->owns_node = true;
    return state;
  }
};

cancellable with_deadline_ns(const context& parent, std::int64_t deadline_ns) {
  if (deadline_ns == 0) deadline_ns = now_ns();  // the time is over; deadline() returns the present
  auto state = context_state::derive_cancellable(parent);
  const std::shared_ptr<cancel_node>& node = state->node;
  const bool earlier = deadline_ns < state->deadline_ns;
  if (earlier) state->deadline_ns = deadline_ns;
  const auto timed_out = make_error_code(context_errc::deadline_exceeded);
  if (earlier && deadline_ns <= now_ns()) {
    node->cancel(timed_out, nullptr);
  } else if (earlier && deadline_ns != no_deadline) {
    const std::chrono::nanoseconds left(deadline_ns - now_ns());
    timer limit = after_func(left, [node, timed_out] { node->cancel(timed_out, nullptr); });
    std::unique_lock guard(node->lock);
    if (!node->err) {
      node->limit.emplace(std::move(limit));
    } else {
      guard.unlock();
      limit.stop();
    }
  }
  return context_state::make_both(state);
}

context with_any(const context& parent, const void* key, std::any value) {
  auto state = context_state::derive(parent);
  state->key = key;
  state->value = std::move(value);
  return context_state::make(state);
}

// tools/gdb: whether a context is done, and when it will be. A std::shared_ptr begins with the
// pointer, and a std::error_code with the number, in both standard libraries.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
GOFER_DEBUG_TABLE(gofer_debug_contexts) = {
    GOFER_DEBUG_FIELD(context_state, parent),
    GOFER_DEBUG_FIELD(context_state, node),
    GOFER_DEBUG_FIELD(context_state, deadline_ns),
    GOFER_DEBUG_FIELD(context_state, key),
    GOFER_DEBUG_FIELD(cancel_node, done),
    GOFER_DEBUG_FIELD(cancel_node, err),
    {"canceled", static_cast<uint64_t>(context_errc::canceled)},
    {"deadline_exceeded", static_cast<uint64_t>(context_errc::deadline_exceeded)},
    {}};

}  // namespace detail

using detail::cancel_node;
using detail::context_state;

namespace {

const std::shared_ptr<cancel_node>& node_of(const std::shared_ptr<context_state>& state) {
  static const std::shared_ptr<cancel_node> none;
  return state == nullptr ? none : state->node;
}

}  // namespace

recv_chan<std::monostate> context::done() const {
  const auto& node = node_of(state_);
  return node == nullptr ? recv_chan<std::monostate>() : recv_chan<std::monostate>(node->done);
}

std::error_code context::err() const {
  const auto& node = node_of(state_);
  if (node == nullptr) return {};
  std::lock_guard guard(node->lock);
  return node->err;
}

std::exception_ptr context::cause() const {
  const auto& node = node_of(state_);
  if (node == nullptr) return nullptr;
  std::lock_guard guard(node->lock);
  return node->cause;
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
  const auto& node = node_of(state_);
  if (node == nullptr) return {};
  std::unique_lock guard(node->lock);
  if (!node->stops.stop_possible()) node->stops = std::stop_source();
  std::stop_source source = node->stops;
  const bool ended = static_cast<bool>(node->err);
  guard.unlock();
  if (ended) source.request_stop();
  return source.get_token();
}

void cancel_func::operator()(std::exception_ptr cause) const {
  if (state_ == nullptr) return;
  state_->node->cancel(make_error_code(context_errc::canceled), std::move(cause));
}

cancellable with_cancel(const context& parent) {
  return context_state::make_both(context_state::derive_cancellable(parent));
}

context without_cancel(const context& parent) {
  auto state = context_state::derive(parent);
  state->node = nullptr;
  state->deadline_ns = detail::no_deadline;
  return context_state::make(state);
}

context with_stop_token(const context& parent, std::stop_token token) {
  auto state = context_state::derive_cancellable(parent, &token);
  const std::weak_ptr<cancel_node> weak = state->node;
  state->node->on_stop.emplace(std::move(token), [weak] {
    if (auto alive = weak.lock()) {
      alive->cancel(make_error_code(context_errc::canceled), nullptr);
    }
  });
  return context_state::make(state);
}

bool detail::is_done(const context& ctx) noexcept { return internal::until_done(ctx).refuses(); }

detail::shared_function<bool()> detail::after_done(const context& ctx, shared_function<void()> f) {
  const std::shared_ptr<cancel_node> node = node_of(context_state::of(ctx));
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  if (node == nullptr) return [stopped] { return !stopped->exchange(true); };
  std::unique_lock guard(node->lock);
  if (node->err) {
    guard.unlock();
    go(std::move(f));
    return [] { return false; };
  }
  guard.unlock();
  // All memory is there before the node knows the function.
  cancel_node::functions added;
  added.push_back(std::move(f));
  const auto place = added.begin();
  shared_function<bool()> take_back = [node, place, stopped] {
    cancel_node::functions gone;  // destroyed after the lock is released
    {
      std::lock_guard lock(node->lock);
      if (node->err || stopped->exchange(true)) return false;
      gone.splice(gone.end(), node->after, place);
    }
    node->leave_if_idle();
    return true;
  };
  guard.lock();
  if (!node->err) {
    node->after.splice(node->after.end(), added);
    return take_back;
  }
  guard.unlock();
  go(std::move(added.front()));
  return [] { return false; };
}

namespace internal {

context done_with_either(const context& ctx, const context& other) {
  const auto& others_node = node_of(context_state::of(other));
  if (others_node != nullptr && others_node->ends_with(node_of(context_state::of(ctx)))) {
    static constexpr char key = 0;
    auto state = context_state::derive(ctx);
    state->node = others_node;
    state->key = &key;
    state->value = other;  // one more handle of it
    return context_state::make(std::move(state));
  }
  auto state = context_state::derive_cancellable(ctx);
  const std::shared_ptr<cancel_node>& node = state->node;
  const auto canceled = make_error_code(context_errc::canceled);
  if (other.err()) {  // at once, and not in a goroutine
    node->cancel(canceled, nullptr);
    return context_state::make(std::move(state));
  }
  auto leave = detail::after_done(other, [node, canceled] { node->cancel(canceled, nullptr); });
  std::unique_lock guard(node->lock);
  if (!node->err) {
    node->leave_other = std::move(leave);
  } else {
    guard.unlock();
    leave();
  }
  return context_state::make(std::move(state));
}

WaitLimit until_done(const context& ctx) {
  const auto& node = node_of(context_state::of(ctx));
  return {no_deadline, node == nullptr ? nullptr : node->done.core()};
}

}  // namespace internal

}  // namespace gofer
