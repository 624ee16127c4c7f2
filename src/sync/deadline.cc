// What durations and functions of the public headers need of the library.
#include <gofer/detail/deadline.h>
#include <gofer/detail/function.h>
#include <gofer/detail/word.h>

#include <atomic>
#include <functional>

#include "os/thread.h"

namespace gofer::detail {

// A word takes either kind of order.
template <order Ours, std::memory_order Theirs>
inline constexpr bool same = static_cast<int>(Ours) == static_cast<int>(Theirs);
static_assert(same<order::relaxed, std::memory_order_relaxed>);
static_assert(same<order::acquire, std::memory_order_acquire>);
static_assert(same<order::release, std::memory_order_release>);
static_assert(same<order::acq_rel, std::memory_order_acq_rel>);
static_assert(same<order::seq_cst, std::memory_order_seq_cst>);

std::int64_t now_ns() noexcept { return internal::os::now_ns(); }

std::int64_t in_ns(std::int64_t ns) noexcept {
  const std::int64_t now = internal::os::now_ns();
  return ns >= no_deadline - now ? no_deadline : now + ns;
}

void throw_bad_function_call() { throw std::bad_function_call(); }

}  // namespace gofer::detail
