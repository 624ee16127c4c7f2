// What a profiler sees that follows frame pointers, as `perf record -g` does. This file is compiled
// with them. From its functions the chain leads to the beginning of the goroutine and ends there.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "runtime/procs/current.h"
#include "support/procs.h"

namespace gofer {
namespace {

using internal::Inside;
using test::Procs;

struct Chain {
  int frames = 0;
  bool on_stack = true;  // each frame is on the goroutine's stack, above the one before
  uintptr_t last = 0;    // where it has led to
};

[[gnu::noinline]] Chain follow_frames() {
  uintptr_t low;
  uintptr_t high;
  {
    const Inside inside;
    const internal::G* g = inside.m()->curg;
    low = reinterpret_cast<uintptr_t>(g->stack());
    high = reinterpret_cast<uintptr_t>(g->head);
  }
  Chain chain;
  chain.last = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  while (chain.last != 0) {
    chain.on_stack = chain.last > low && chain.last < high;
    if (!chain.on_stack) break;
    low = chain.last;
    ++chain.frames;
    chain.last = *reinterpret_cast<const uintptr_t*>(chain.last);
  }
  return chain;
}

[[gnu::noinline]] Chain follow_frames_below(int depth) {
  Chain chain = depth == 0 ? follow_frames() : follow_frames_below(depth - 1);
  asm volatile("" : : "r"(&chain) : "memory");  // no tail call
  return chain;
}

constexpr int depth = 10;

void expect_end_at_entry(const Chain& chain) {
  EXPECT_TRUE(chain.on_stack) << chain.frames << " frames, then " << std::hex << chain.last;
  EXPECT_EQ(chain.last, 0u);
  EXPECT_GT(chain.frames, depth);
  EXPECT_LT(chain.frames, 10 * depth);
}

TEST(FramePointers, EndAtTheEntryOfTheMainGoroutine) {
  expect_end_at_entry(run([] { return follow_frames_below(depth); }));
}

TEST(FramePointers, EndAtTheEntryOfAGoroutineOnAStackOfItsOwn) {
  Chain chain;
  run([&] {
    wait_group done;
    done.go([&] { chain = follow_frames_below(depth); });
    done.wait();
  });
  expect_end_at_entry(chain);
}

TEST(FramePointers, EndAtTheEntryOfAGoroutineThatNobodyWaitsFor) {
  run([] {
    chan<Chain> chains(0);
    go([=] { chains.send(follow_frames_below(depth)); });
    expect_end_at_entry(*chains.recv());
  });
}

TEST(FramePointers, EndAtTheEntryOfFunctionsThatTimersAndContextsCall) {
  run([] {
    chan<Chain> chains(0);
    const timer t =
        after_func(std::chrono::milliseconds(1), [=] { chains.send(follow_frames_below(depth)); });
    expect_end_at_entry(*chains.recv());
    const auto [ctx, cancel] = with_cancel(background());
    after_func(ctx, [=] { chains.send(follow_frames_below(depth)); });
    cancel();
    expect_end_at_entry(*chains.recv());
  });
}

// With one P each goroutine takes the stack over from the one that has ended just before.
TEST(FramePointers, EndAtTheEntryOfAGoroutineThatHasTakenAStackOver) {
  const Procs one(1);
  constexpr int goroutines = 10;
  Chain chains[goroutines];
  run([&] {
    wait_group done;
    for (Chain& chain : chains) done.go([&] { chain = follow_frames_below(depth); });
    done.wait();
  });
  for (const Chain& chain : chains) expect_end_at_entry(chain);
}

// After a switch the registers are the goroutine's own again, on whatever thread.
TEST(FramePointers, EndAtTheEntryAfterSwitches) {
  run([] {
    wait_group done;
    for (int i = 0; i < 4; ++i) {
      done.go([] {
        for (int n = 0; n < 100; ++n) yield();
        expect_end_at_entry(follow_frames_below(depth));
      });
    }
    done.wait();
  });
}

}  // namespace
}  // namespace gofer
