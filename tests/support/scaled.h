// How often a test does something, in this build.
#pragma once

#include "runtime/base/sanitizer.h"

namespace gofer::test {

/// So many; under a sanitizer, where everything takes that much longer, fewer, but never none.
constexpr int scaled(int count, int divisor = 20) {
  return internal::sanitizers_enabled ? (count + divisor - 1) / divisor : count;
}

}  // namespace gofer::test
