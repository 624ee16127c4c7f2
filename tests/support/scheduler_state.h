// Looking into the scheduler: what tests of its rules ask.
#pragma once

#include <gofer/go.h>
#include <gtest/gtest.h>

#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/spinning.h"
#include "support/wait_until.h"

namespace gofer::test {

/// The P of the calling goroutine, which stays there as long as there is no other goroutine.
inline internal::P* my_p() {
  internal::Inside inside;
  return inside.m()->p;
}

/// On the caller's P the next look at the global queue, which is one at the ring before runnext,
/// too, is as far away as it can be: 61 switches. Before a test of an order.
inline void put_off_look() {
  internal::Inside inside;
  inside.m()->p->budget = internal::switches_per_look;
}

/// Everything that earlier tests started has ended, down to the last switch.
inline void expect_quiet() {
  ASSERT_TRUE(wait_until([] {
    return num_goroutine() == 0 &&
           internal::wake_state.idle_p_count.load() == internal::p_table.in_use.load() &&
           internal::wake_state.spinning_ms.load() == 0;
  }));
}

}  // namespace gofer::test
