// Time that passes without a call of the runtime.
#pragma once

#include "runtime/base/atomic.h"

namespace gofer::test {

/// For that many pauses of the processor. (compute() of support/beside.h is shorter by far: a test
/// has one or the other.)
inline void compute(int n) {
  for (int i = 0; i < n; ++i) internal::cpu_relax();
}

}  // namespace gofer::test
