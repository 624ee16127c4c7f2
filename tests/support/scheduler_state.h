// Looking into the scheduler: what tests of its rules ask.
#pragma once

#include <gofer/go.h>
#include <gtest/gtest.h>

#include "runtime/sched.h"
#include "support/wait_until.h"

namespace gofer::test {

/// The P of the calling goroutine, which stays there as long as nobody else is about.
inline internal::P* my_p() {
  internal::Inside inside;
  return inside.m()->p;
}

/// Everything that earlier tests started has ended, down to the last switch.
inline void expect_quiet() {
  ASSERT_TRUE(wait_until([] {
    return num_goroutine() == 0 &&
           internal::sched.idle_p_count.load() == internal::sched.procs.load() &&
           internal::sched.spinning_ms.load() == 0;
  }));
}

}  // namespace gofer::test
