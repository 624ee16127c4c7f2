// What the tests of prologues share: a probe in the runtime's end of the hook that counts and
// spoils every register it may, and a thread that raises another one's guard all the time.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

/// Whether GOFER_RAISE does anything.
extern "C" int gofer_test_armed;

/// Raises this thread's guard. A macro, because the prologue of a function would answer it itself.
#define GOFER_RAISE() \
  if (gofer_test_armed) asm volatile("movq $-1, %%fs:0x70" ::: "memory")

namespace gofer::test {

/// Calls of the hook since the last Spoiler was made.
uint64_t pauses();

/// While it lives, every pause leaves other values in all registers that a called function may
/// change.
class Spoiler {
 public:
  Spoiler();
  ~Spoiler();
  Spoiler(const Spoiler&) = delete;
  Spoiler& operator=(const Spoiler&) = delete;
};

/// Raises the guard of the thread that makes it, from another thread, until it is destroyed.
class Fire {
 public:
  Fire();
  ~Fire();
  Fire(const Fire&) = delete;
  Fire& operator=(const Fire&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace gofer::test
