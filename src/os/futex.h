// Futexes, called directly: errno is not touched, nothing is allocated, and the calls may be used
// on any stack. If the kernel refuses them, the process ends with a message.
#pragma once

#include <atomic>
#include <cstdint>

namespace gofer::internal::os {

/// Sleeps while *word == expected, at most timeout_ns (negative: without limit). False on timeout.
bool futex_wait(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns = -1);

void futex_wake(std::atomic<uint32_t>* word, int count = 1);

}  // namespace gofer::internal::os
