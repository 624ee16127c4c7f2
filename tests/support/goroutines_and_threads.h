// Asking the same of goroutines and of foreign threads.
#pragma once

#include <gofer/go.h>
#include <gofer/wait_group.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gofer::test {

/// Calls f in a goroutine, then in this thread.
template <class F>
void in_goroutine_and_thread(F f) {
  run(f);
  SCOPED_TRACE("in a thread");
  f();
}

/// Calls f(number) in so many goroutines and threads and waits for them all.
template <class F>
void in_all(int goroutines, int threads, F f) {
  wait_group group;
  for (int i = 0; i < goroutines; ++i) group.go([&f, i] { f(i); });
  std::vector<std::thread> plain;
  for (int i = 0; i < threads; ++i) plain.emplace_back([&f, i, goroutines] { f(goroutines + i); });
  for (std::thread& t : plain) t.join();
  group.wait();
}

}  // namespace gofer::test
