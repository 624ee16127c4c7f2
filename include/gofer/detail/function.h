// shared_function: std::function for what the library keeps and hands out, without <functional>,
// which is 28,000 lines with g++ 12.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/word.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace gofer::detail {

template <class Signature>
class shared_function;

[[noreturn]] GOFER_API void throw_bad_function_call();

/// A callable of any type, or nothing. Copies share the callable, so it need not be copyable.
template <class R, class... Args>
class shared_function<R(Args...)> {
 public:
  shared_function() noexcept = default;
  shared_function(std::nullptr_t) noexcept {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, shared_function> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  shared_function(F&& f) {
    using callable = std::decay_t<F>;
    // A null pointer or an empty std::function makes an empty one.
    if constexpr (std::is_constructible_v<callable, std::nullptr_t> &&
                  std::is_constructible_v<bool, callable&> &&
                  !std::is_function_v<std::remove_reference_t<F>>) {
      if (!static_cast<bool>(f)) return;
    }
    kept_ = new holder<callable>(std::forward<F>(f));
  }
  shared_function(const shared_function& other) noexcept : kept_(other.kept_) {
    if (kept_ != nullptr) kept_->handles.fetch_add(1, order::relaxed);
  }
  shared_function(shared_function&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  shared_function& operator=(shared_function other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~shared_function() {
    if (kept_ != nullptr && kept_->handles.fetch_sub(1, order::acq_rel) == 1) delete kept_;
  }

  /// Throws std::bad_function_call if there is nothing to call.
  R operator()(Args... args) const {
    if (kept_ == nullptr) throw_bad_function_call();
    return kept_->run(std::forward<Args>(args)...);
  }
  explicit operator bool() const noexcept { return kept_ != nullptr; }
  friend bool operator==(const shared_function& f, std::nullptr_t) { return !f; }

 private:
  struct base {
    virtual ~base() = default;
    virtual R run(Args&&... args) = 0;
    word<int> handles{1};
  };
  template <class F>
  struct holder final : base {
    template <class From>
    explicit holder(From&& from) : f(std::forward<From>(from)) {}
    R run(Args&&... args) override {
      if constexpr (std::is_void_v<R>) {
        detail::call(f, std::forward<Args>(args)...);
      } else {
        return detail::call(f, std::forward<Args>(args)...);
      }
    }
    F f;
  };
  base* kept_ = nullptr;
};

}  // namespace gofer::detail
