// local: a variable of which every goroutine has its own copy, as every thread has of a
// thread_local.
//
//   static gofer::local<std::string> user;
//   *user = "gopher";
//
// A thread_local belongs to the thread, and a goroutine may continue in another thread after any
// call that blocks, so goroutines use a local instead. A foreign thread has its own copy, too.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/function.h>

#include <cstdint>
#include <utility>

namespace gofer {

namespace detail {

GOFER_API std::uint64_t local_new_id() noexcept;
/// The caller's object for an id, or nullptr.
GOFER_API void* local_find(std::uint64_t id) noexcept;
/// Makes the object the caller's. It is destroyed when the goroutine or thread ends, the newest
/// object first. If this throws std::bad_alloc, the calling code still owns the object.
GOFER_API void local_add(std::uint64_t id, void* object, void (*destroy)(void*));

}  // namespace detail

/// Define it at namespace scope or as static. A value outlives its `local` if its goroutine does.
template <class T>
class local {
 public:
  /// Values start as T().
  local() = default;
  /// Values start as what `make` returns; it is called in the goroutine that first uses its value.
  explicit local(detail::shared_function<T()> make) : make_(std::move(make)) {}
  local(const local&) = delete;
  local& operator=(const local&) = delete;

  /// The calling goroutine's value, made on first use. Valid until the goroutine ends.
  T& get() {
    if (void* found = detail::local_find(id_); found != nullptr) return *static_cast<T*>(found);
    struct guard {
      T* fresh;
      ~guard() { delete fresh; }
    } g{make_ ? new T(make_()) : new T()};
    detail::local_add(id_, g.fresh, [](void* p) { delete static_cast<T*>(p); });
    return *std::exchange(g.fresh, nullptr);
  }
  T& operator*() { return get(); }
  T* operator->() { return &get(); }
  /// The value if the goroutine has one already, else nullptr.
  T* peek() { return static_cast<T*>(detail::local_find(id_)); }

 private:
  const std::uint64_t id_ = detail::local_new_id();
  detail::shared_function<T()> make_;
};

}  // namespace gofer
