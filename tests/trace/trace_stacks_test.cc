// The stacks of events: which function blocked, woke or started a goroutine, and on whose behalf.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/procs/current.h"
#include "runtime/trace/session.h"
#include "runtime/trace/stacks.h"
#include "support/chan_waiters.h"
#include "support/scaled.h"
#include "support/traced.h"
#include "support/wait_until.h"

namespace gofer::test {

using namespace std::chrono_literals;

// Not in an unnamed namespace, and never the last thing that a function does: so each has a name in
// every build, and a frame.
void keep_frame() { asm volatile("" ::: "memory"); }

[[gnu::noinline]] void receive_here(chan<int>& c) {
  (void)c.recv();
  keep_frame();
}
[[gnu::noinline]] void receive_there(chan<int>& c) {
  (void)c.recv();
  keep_frame();
}
[[gnu::noinline]] void send_one(chan<int>& c) {
  c.send(1);
  keep_frame();
}
[[gnu::noinline]] void yield_here() {
  yield();
  keep_frame();
}
[[gnu::noinline]] void call_here() {
  blocking([] { std::this_thread::sleep_for(1ms); });
  keep_frame();
}
[[gnu::noinline]] void start_here(wait_group& all) {
  all.go([] {});
  keep_frame();
}
[[gnu::noinline]] void dive(int depth, chan<int>& c) {
  if (depth == 0) {
    receive_here(c);
  } else {
    dive(depth - 1, c);
  }
  keep_frame();
}

// A function of a goroutine, with a name that is known in advance.
struct Receiver {
  chan<int>& c;
  void operator()() const {
    receive_here(c);
    receive_there(c);
  }
};
struct Diver {
  chan<int>& c;
  int depth;
  void operator()() const { dive(depth, c); }
};
struct Worker {
  void operator()() const {
    yield_here();
    call_here();
    wait_group some;
    start_here(some);
    some.wait();
  }
};
// Has stacks that no other test has.
struct Latecomer {
  chan<int>& c;
  void operator()() const {
    receive_here(c);
    wait_group some;
    start_here(some);
    some.wait();
  }
};

namespace {

using Stacks = std::set<std::string>;

const Stacks& stacks_of(const TraceContents& trace, const std::string& what) {
  static const Stacks none;
  const auto found = trace.stacks.find(what);
  return found != trace.stacks.end() ? found->second : none;
}

bool has(const std::string& stack, const std::string& function) {
  return stack.find(function) != stack.npos;
}

// The stacks whose outermost function is this one.
std::vector<std::string> of_goroutines(const Stacks& stacks, const std::string& function) {
  std::vector<std::string> found;
  for (const std::string& stack : stacks) {
    if (stack.ends_with(function + " ")) found.push_back(stack);
  }
  return found;
}

std::string all_of(const Stacks& stacks) {
  std::string text;
  for (const std::string& stack : stacks) text += stack + "\n";
  return text;
}

int count(const std::string& stack, const std::string& function) {
  int n = 0;
  for (size_t at = 0; (at = stack.find(function, at)) != stack.npos; ++at) ++n;
  return n;
}

// Sends to each of n goroutines that receive, when all of them wait.
void send_to_waiting(chan<int>& c, int n = 1) {
  EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == n; }));
  for (int i = 0; i < n; ++i) send_one(c);
}

TEST(TraceStacks, OfABlockGoFromTheFunctionThatBlocksToThatOfTheGoroutine) {
  run([] {
    const TraceContents trace = traced([] {
      chan<int> c(0);
      wait_group all;
      all.go(Receiver{c});
      for (int i = 0; i < 2; ++i) send_to_waiting(c);
      all.wait();
    });
    const Stacks& blocks = stacks_of(trace, "chan receive");
    const auto receiver = of_goroutines(blocks, "gofer::test::Receiver");
    ASSERT_EQ(receiver.size(), 2u) << all_of(blocks);
    for (const char* function : {"receive_here", "receive_there"}) {
      const int n = has(receiver[0], function) + has(receiver[1], function);
      EXPECT_EQ(n, 1) << function << " in\n" << all_of(blocks);
    }
    EXPECT_FALSE(has(all_of(blocks), "gofer::internal")) << all_of(blocks);
  });
}

TEST(TraceStacks, OfTheSameFunctionAreThoseWithWhichTheTraceSaysThatItBegins) {
  run([] {
    const TraceContents trace = traced([] {
      chan<int> c(0);
      wait_group all;
      all.go(Receiver{c});
      all.go(Diver{c, 3});
      send_to_waiting(c, 2);
      send_to_waiting(c);
      all.wait();
    });
    for (const std::string& stack : stacks_of(trace, "chan receive")) {
      bool created = false;
      for (const auto& [function, n] : trace.created) {
        created = created || stack.ends_with(" " + function + " ");
      }
      EXPECT_TRUE(created) << stack;
    }
  });
}

TEST(TraceStacks, OfWakeUpsYieldsCallsAndCreationsAreThoseOfTheGoroutineThatDoesIt) {
  run([] {
    const TraceContents trace = traced([] {
      chan<int> c(0);
      wait_group all;
      all.go(Receiver{c});
      all.go(Worker{});
      for (int i = 0; i < 2; ++i) send_to_waiting(c);
      all.wait();
    });
    const auto of_worker = [&](const char* event) {
      return of_goroutines(stacks_of(trace, event), "gofer::test::Worker");
    };
    const auto created = of_worker("GoCreate");
    ASSERT_EQ(created.size(), 1u) << all_of(stacks_of(trace, "GoCreate"));
    EXPECT_TRUE(has(created[0], "start_here"));
    const auto called = of_worker("GoSyscallBegin");
    ASSERT_FALSE(called.empty()) << all_of(stacks_of(trace, "GoSyscallBegin"));
    EXPECT_TRUE(has(called[0], "call_here"));
    EXPECT_TRUE(has(all_of(stacks_of(trace, "GoUnblock")), "send_one"));
  });
}

TEST(TraceStacks, OfAYieldHaveTheFunctionThatYields) {
  run([] {
    const TraceContents trace = traced([] {
      wait_group all;
      for (int i = 0; i < 20; ++i) all.go(Worker{});
      all.wait();
    });
    // A goroutine that finds no other one does not yield.
    for (const std::string& stack : of_goroutines(stacks_of(trace, "GoStop"), "Worker")) {
      EXPECT_TRUE(has(stack, "yield_here") || has(stack, "call_here")) << stack;
    }
    EXPECT_TRUE(gomaxprocs(0) > 1 || has(all_of(stacks_of(trace, "GoStop")), "yield_here"));
  });
}

TEST(TraceStacks, OfARecursionHaveItsInnermostCallsAndTheFunctionOfTheGoroutine) {
  run([] {
    const std::vector<int> depths{1, 5, 100};
    const TraceContents trace = traced([&] {
      chan<int> c(0);
      wait_group all;
      for (const int depth : depths) all.go(Diver{c, depth});
      send_to_waiting(c, static_cast<int>(depths.size()));
      all.wait();
    });
    std::set<int> calls;
    for (const std::string& stack :
         of_goroutines(stacks_of(trace, "chan receive"), "gofer::test::Diver")) {
      calls.insert(count(stack, "dive "));
      EXPECT_EQ(count(stack, "receive_here"), 1);
    }
    ASSERT_EQ(calls.size(), depths.size());
    EXPECT_EQ(*calls.begin(), 2);
    EXPECT_EQ(*std::next(calls.begin()), 6);
    EXPECT_GT(*calls.rbegin(), 10);
    EXPECT_LT(*calls.rbegin(), 100);
  });
}

TEST(TraceStacks, OfAGoroutineThatIsOlderThanTheTraceHaveItsFunction) {
  run([] {
    chan<int> c(0);
    wait_group all;
    all.go(Receiver{c});
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
    const TraceContents trace = traced([&] {
      for (int i = 0; i < 2; ++i) send_to_waiting(c);
      all.wait();
    });
    const auto receiver = of_goroutines(stacks_of(trace, "chan receive"), "gofer::test::Receiver");
    ASSERT_EQ(receiver.size(), 1u) << all_of(stacks_of(trace, "chan receive"));
    EXPECT_TRUE(has(receiver[0], "receive_there"));
  });
}

TEST(TraceStacks, TellTheFunctionOfAGoroutineThatOnlyWaits) {
  run([] {
    chan<int> c(0);
    wait_group all;
    all.go(Receiver{c});
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
    const TraceContents trace = traced([] {});
    EXPECT_TRUE(stacks_of(trace, "GoStatusStack").contains(" gofer::test::Receiver "))
        << all_of(stacks_of(trace, "GoStatusStack"));
    for (int i = 0; i < 2; ++i) send_to_waiting(c);
    all.wait();
  });
}

TEST(TraceStacks, AreInEachTraceAndEachGeneration) {
  run([] {
    for (int i = 0; i < scaled(20, 3); ++i) {
      const TraceContents trace = traced([&] {
        chan<int> c(0);
        wait_group all;
        all.go(Receiver{c});
        send_to_waiting(c);
        if (i == 0) {
          const auto first = internal::tracer::session.generation.load();
          EXPECT_TRUE(
              wait_until([&] { return internal::tracer::session.generation.load() != first; }));
        }
        send_to_waiting(c);
        all.go(Receiver{c});
        for (int k = 0; k < 2; ++k) send_to_waiting(c);
        all.wait();
      });
      EXPECT_GT(trace.generations, i == 0 ? 1u : 0u);
      EXPECT_EQ(of_goroutines(stacks_of(trace, "chan receive"), "Receiver").size(), 2u) << i;
    }
  });
}

void limit_stacks(uint32_t most) {
  const internal::Inside inside;
  internal::tracer::limit_stacks(most);
}

TEST(TraceStacks, AreLeftOutWhereTheTableHasNoRoomForMore) {
  run([] {
    limit_stacks(0);
    const TraceContents trace = traced([] {
      chan<int> c(0);
      wait_group all;
      all.go(Latecomer{c});
      send_to_waiting(c);
      all.wait();
    });
    limit_stacks(internal::tracer::most_stacks);
    EXPECT_TRUE(trace.created.contains("gofer::test::Latecomer"));
    EXPECT_EQ(trace.blocks.at("chan receive"), 1u);
    EXPECT_TRUE(of_goroutines(stacks_of(trace, "chan receive"), "Latecomer").empty());
    // A creation has the line of its call.
    EXPECT_FALSE(stacks_of(trace, "GoCreate").empty());
    EXPECT_TRUE(of_goroutines(stacks_of(trace, "GoCreate"), "Latecomer").empty());
  });
}

TEST(TraceStacks, AreAcceptedByGo) {
  if (!has_go()) GTEST_SKIP() << "no Go";
  const TraceFile file;
  trace::start(file.path());
  run([] {
    chan<int> c(0);
    wait_group all;
    all.go(Receiver{c});
    all.go(Diver{c, 50});
    all.go(Worker{});
    send_to_waiting(c, 2);
    send_to_waiting(c);
    all.wait();
  });
  trace::stop();
  EXPECT_TRUE(is_accepted_by_go(file.path())) << file.path();
}

}  // namespace
}  // namespace gofer::test
