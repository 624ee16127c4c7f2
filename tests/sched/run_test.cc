// `run`: what it calls and where, what it returns, and what it does not wait for.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/quiescent.h"
#include "support/scaled.h"

namespace gofer {
namespace {

using test::quiescent;

constexpr int scaled(int count) { return test::scaled(count, 50); }

using RunCall = test::QuiescentTest;

TEST_F(RunCall, ReturnsTheValue) {
  EXPECT_EQ(run([] { return 42; }), 42);
  EXPECT_EQ(run([] { return std::string(10'000, 'x'); }), std::string(10'000, 'x'));
  const std::unique_ptr<int> moved = run([] { return std::make_unique<int>(7); });
  EXPECT_EQ(*moved, 7);
  EXPECT_EQ(run([] { return std::optional<int>(); }), std::nullopt);
  bool ran = false;
  run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(RunCall, CallsTheObjectItIsGiven) {
  struct Functor {
    int calls = 0;
    Functor() = default;
    Functor(const Functor&) = delete;
    int operator()() { return ++calls; }
  } functor;
  EXPECT_EQ(run(functor), 1);
  EXPECT_EQ(run(functor), 2);
  const auto constant = [] { return 3; };
  EXPECT_EQ(run(constant), 3);
  const auto constant_void = [] {};
  run(constant_void);
}

int calls = 0;
void plain_function() { ++calls; }
int main_function() { return static_cast<int>(this_goroutine::id() != 0); }

TEST_F(RunCall, TakesFunctions) {
  EXPECT_EQ(run(main_function), 1);
  EXPECT_EQ(run(&main_function), 1);
  calls = 0;
  run(plain_function);
  run(&plain_function);
  EXPECT_EQ(calls, 2);
}

TEST_F(RunCall, ReturnsReferences) {
  int value = 1;
  int& same = run([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  std::string text = "moved";
  const std::string taken = run([&]() -> std::string&& { return std::move(text); });
  EXPECT_EQ(taken, "moved");
  const int& constant = run([&]() -> const int& { return value; });
  EXPECT_EQ(&constant, &value);
}

TEST_F(RunCall, RunsInAGoroutineOnAnotherThread) {
  const pid_t here = gettid();
  EXPECT_NE(run([] { return gettid(); }), here);
  EXPECT_NE(run([] { return this_goroutine::id(); }), 0u);
}

int nested(int depth) {
  return depth == 0 ? 0 : 1 + run([&] { return nested(depth - 1); });
}

TEST_F(RunCall, Nests) {
  EXPECT_EQ(nested(1), 1);
  EXPECT_EQ(nested(200), 200);
  // Several at once, inside goroutines.
  std::atomic<int> sum{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < 50; ++i) group.go([&, i] { sum += nested(i % 10); });
    group.wait();
  });
  EXPECT_EQ(sum, 5 * 45);
}

TEST_F(RunCall, WorksFromSeveralThreadsAtOnce) {
  const int threads_count = 8;
  const int each = scaled(5000);
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        sum += run([&] {
          if (i % 3 == 0) yield();
          return t * each + i;
        });
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const long n = static_cast<long>(threads_count) * each;
  EXPECT_EQ(sum, n * (n - 1) / 2);
}

TEST_F(RunCall, ReturnsWhileOthersStay) {
  wait_group gate;
  gate.add(1);
  std::atomic<int> finished{0};
  const int result = run([&] {
    for (int i = 0; i < 10; ++i) {
      go([&] {
        gate.wait();
        ++finished;
      });
    }
    return 5;
  });
  EXPECT_EQ(result, 5);
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(run([] { return 6; }), 6);
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(finished, 10);
}

TEST_F(RunCall, SeesWhatWasWrittenBeforeAndShowsWhatIsWrittenInside) {
  std::vector<int> data(1000);
  std::iota(data.begin(), data.end(), 0);
  run([&] {
    for (int& x : data) x *= 2;
    go([] {});
    yield();
  });
  EXPECT_EQ(std::accumulate(data.begin(), data.end(), 0), 999'000);
}

}  // namespace
}  // namespace gofer
