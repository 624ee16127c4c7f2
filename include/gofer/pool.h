// pool: objects to be used again, without a lock that all processors share.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/function.h>

#include <memory>
#include <utility>

namespace gofer {

namespace detail {

struct pool_core;
GOFER_API pool_core* pool_new();
GOFER_API void pool_delete(pool_core* core, void (*destroy)(void*)) noexcept;
/// Returns nullptr if there is none.
GOFER_API void* pool_take(pool_core* core) noexcept;
/// Returns false if there are enough.
GOFER_API bool pool_give(pool_core* core, void* object) noexcept;

}  // namespace detail

/// Go's sync.Pool without a garbage collector: every processor keeps up to 14 objects, and further
/// ones are destroyed. If possible, get() returns an object that was last used on this processor.
template <class T>
class pool {
 public:
  pool() : pool([] { return std::make_unique<T>(); }) {}
  /// `make` makes an object when the pool has none.
  explicit pool(detail::shared_function<std::unique_ptr<T>()> make)
      : core_(detail::pool_new()), make_(std::move(make)) {}
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool() {
    detail::pool_delete(core_, [](void* p) { delete static_cast<T*>(p); });
  }

  /// Returns an object that was put here, in the state in which it was put, or a new one.
  [[nodiscard]] std::unique_ptr<T> get() {
    if (void* p = detail::pool_take(core_); p != nullptr) {
      return std::unique_ptr<T>(static_cast<T*>(p));
    }
    return make_();
  }
  void put(std::unique_ptr<T> object) {
    if (object != nullptr && detail::pool_give(core_, object.get())) object.release();
  }

 private:
  detail::pool_core* core_;
  detail::shared_function<std::unique_ptr<T>()> make_;
};

}  // namespace gofer
