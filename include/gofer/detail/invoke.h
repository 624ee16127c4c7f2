// call: std::invoke, without <functional>, which is 28,000 lines with g++ 12.
#pragma once

#include <gofer/detail/config.h>

#include <tuple>
#include <type_traits>
#include <utility>

namespace gofer::detail {

/// Calls f(args...). std::apply calls pointers to members as std::invoke does.
template <class F, class... Args>
[[gnu::always_inline]] inline std::invoke_result_t<F, Args...> call(F&& f, Args&&... args) {
  if constexpr (std::is_member_pointer_v<std::remove_cvref_t<F>>) {
    return std::apply(std::forward<F>(f), std::forward_as_tuple(std::forward<Args>(args)...));
  } else {
    return std::forward<F>(f)(std::forward<Args>(args)...);
  }
}

}  // namespace gofer::detail
