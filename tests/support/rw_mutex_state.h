// The holders of an rw_mutex, and its waiters.
#pragma once

#include <gofer/rw_mutex.h>
#include <gtest/gtest.h>

#include "support/wait_until.h"

namespace gofer::test {

/// It has no holder and no waiter, and it works.
inline testing::AssertionResult is_free(rw_mutex& m) {
  if (!m.try_lock()) return testing::AssertionFailure() << "it is not free";
  if (m.try_lock() || m.try_lock_shared()) return testing::AssertionFailure() << "locked twice";
  m.unlock();
  if (!m.try_lock_shared()) return testing::AssertionFailure() << "readers cannot have it";
  if (!m.try_lock_shared()) return testing::AssertionFailure() << "only one reader can have it";
  m.unlock_shared();
  m.unlock_shared();
  return testing::AssertionSuccess();
}

/// With readers in it: a writer waits, so that no more may come.
[[nodiscard]] inline bool writer_waits(rw_mutex& m) {
  return wait_until([&] {
    if (!m.try_lock_shared()) return true;
    m.unlock_shared();
    return false;
  });
}

}  // namespace gofer::test
