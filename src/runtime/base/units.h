// Units of time, in nanoseconds.
#pragma once

#include <cstdint>

namespace gofer::internal {

inline constexpr int64_t us = 1'000;
inline constexpr int64_t ms = 1'000'000;

}  // namespace gofer::internal
