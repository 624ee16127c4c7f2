// wait_group: counting, waiting, reuse and destruction, among goroutines and foreign threads.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <climits>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::quiescent;
using test::scaled;
using test::wait_until;

using WaitGroup = test::QuiescentTest;

static_assert(!std::is_copy_constructible_v<wait_group> &&
              !std::is_move_constructible_v<wait_group>);
static_assert(std::is_nothrow_default_constructible_v<wait_group>);

TEST_F(WaitGroup, OfZeroDoesNotWait) {
  wait_group group;
  group.wait();
  group.add(0);
  group.wait();
  group.add(3);
  group.add(-3);
  group.wait();
  run([&] {
    group.wait();
    group.add(0);
    group.add(1);
    group.done();
    group.wait();
  });
}

// Whether a goroutine that waits is released by `release`, and not before.
template <class Release>
bool released_only_by(wait_group& group, Release&& release) {
  std::atomic<bool> waiting{false};
  std::atomic<bool> released{false};
  go([&] {
    waiting = true;
    group.wait();
    released = true;
  });
  bool ok = wait_until([&] { return waiting.load(); });
  for (int i = 0; i < 100; ++i) yield();
  ok = ok && !released;
  release();
  return quiescent() && released && ok;
}

TEST_F(WaitGroup, ReleasesAtZeroOnly) {
  wait_group group;
  group.add(1);
  EXPECT_TRUE(released_only_by(group, [&] { group.done(); }));
  group.add(1000);
  EXPECT_TRUE(released_only_by(group, [&] { group.add(-1000); }));
  group.add(3);
  group.done();
  EXPECT_TRUE(released_only_by(group, [&] {
    group.add(5);
    group.add(0);
    group.add(-6);
    group.add(2);
    group.done();
    group.add(-2);
  }));
  group.add(INT_MAX);
  EXPECT_TRUE(released_only_by(group, [&] {
    group.add(-INT_MAX + 1);
    group.add(0);
    group.done();
  }));
}

TEST_F(WaitGroup, WaitsForGoroutines) {
  const int count = scaled(50'000);
  std::vector<int> results(static_cast<std::size_t>(count));
  for (const bool in_goroutine : {false, true}) {
    const auto work = [&] {
      wait_group group;
      for (int i = 0; i < count; ++i) {
        group.add(1);
        go([&, i] {
          if (i % 7 == 0) yield();
          results[static_cast<std::size_t>(i)] += i;
          group.done();
        });
      }
      group.wait();
    };
    if (in_goroutine) {
      run(work);
    } else {
      work();
    }
  }
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += results[static_cast<std::size_t>(i)] != 2 * i;
  EXPECT_EQ(wrong, 0);
}

TEST_F(WaitGroup, ReleasesManyWaiters) {
  const int goroutines = scaled(5000);
  const int threads_count = 8;
  wait_group group;
  group.add(2);
  std::atomic<int> before{0};
  std::atomic<int> released{0};
  for (int i = 0; i < goroutines; ++i) {
    go([&] {
      ++before;
      group.wait();
      ++released;
    });
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; ++i) {
    threads.emplace_back([&] {
      ++before;
      group.wait();
      ++released;
    });
  }
  EXPECT_TRUE(wait_until([&] { return before == goroutines + threads_count; }));
  group.done();
  for (int i = 0; i < 100; ++i) yield();
  EXPECT_EQ(released, 0);
  group.done();
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(released, goroutines + threads_count);
}

TEST_F(WaitGroup, IsUsedAgainRoundAfterRound) {
  const int rounds = scaled(20'000);
  std::atomic<int> wrong{0};
  run([&] {
    wait_group group;
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
      const int members = 1 + round % 5;
      std::array<int, 5> values{};
      for (int i = 0; i < members; ++i) {
        group.go([&values, i, round] { values[static_cast<std::size_t>(i)] = round; });
      }
      group.wait();
      for (const int v : values) sum += v;
      wrong += sum != members * round;
      sum = 0;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// Two goroutines, two groups: each waits for the other in turn.
TEST_F(WaitGroup, PassesTurnsBackAndForth) {
  const int rounds = scaled(50'000);
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(2 * rounds));
  run([&] {
    wait_group ping, pong, both;
    ping.add(1);
    pong.add(1);
    both.go([&] {
      for (int i = 0; i < rounds; ++i) {
        ping.wait();
        ping.add(1);
        order.push_back(1);
        pong.done();
      }
    });
    both.go([&] {
      for (int i = 0; i < rounds; ++i) {
        pong.wait();
        pong.add(1);
        order.push_back(2);
        ping.done();
      }
    });
    ping.done();
    both.wait();
  });
  ASSERT_EQ(order.size(), static_cast<std::size_t>(2 * rounds));
  int wrong = 0;
  for (std::size_t i = 0; i < order.size(); ++i) wrong += order[i] != static_cast<int>(i % 2) + 1;
  EXPECT_EQ(wrong, 0);
}

// While two goroutines pass turns without end, others in the queue run all the same.
TEST_F(WaitGroup, PairThatPassesTurnsDoesNotStarveOthers) {
  std::atomic<bool> stop{false};
  std::atomic<int> others{0};
  const int wanted = 20;
  run([&] {
    wait_group ping, pong, all;
    ping.add(1);
    pong.add(1);
    all.go([&] {
      for (bool last = false; !last;) {
        ping.wait();
        ping.add(1);
        last = stop;
        pong.done();
      }
    });
    all.go([&] {
      for (bool last = false; !last;) {
        pong.wait();
        pong.add(1);
        last = others == wanted;
        if (last) stop = true;
        ping.done();
      }
    });
    for (int i = 0; i < wanted; ++i) {
      all.go([&] {
        yield();
        ++others;
      });
    }
    ping.done();
    all.wait();
  });
  EXPECT_EQ(others, wanted);
}

TEST_F(WaitGroup, WorksBetweenPlainThreadsOnly) {
  const int threads_count = 8;
  const int rounds = scaled(2000);
  int wrong = 0;
  for (int round = 0; round < rounds / 20; ++round) {
    wait_group start, finish;
    start.add(1);
    finish.add(threads_count);
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < threads_count; ++t) {
      threads.emplace_back([&] {
        start.wait();
        ++sum;
        finish.done();
      });
    }
    start.done();
    finish.wait();
    wrong += sum != threads_count;
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(WaitGroup, IsDoneByPlainThreadsForGoroutines) {
  const int count = scaled(4000);
  const int threads_count = 4;
  std::vector<std::unique_ptr<wait_group>> groups;
  for (int i = 0; i < count; ++i) {
    groups.push_back(std::make_unique<wait_group>());
    groups.back()->add(threads_count);
  }
  std::atomic<int> released{0};
  for (int i = 0; i < count; ++i) {
    go([&, i] {
      groups[static_cast<std::size_t>(i)]->wait();
      ++released;
    });
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&] {
      for (const auto& group : groups) group->done();
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(released, count);
}

// The group is gone the moment wait() returns, and its memory is used for something else.
template <class Spawn>
int destroyed_at_once(int rounds, Spawn&& spawn) {
  int wrong = 0;
  union Place {
    Place() {}
    ~Place() {}
    wait_group group;
    std::array<unsigned char, sizeof(wait_group)> bytes;
  };
  const auto place = std::make_unique<Place>();
  for (int round = 0; round < rounds; ++round) {
    auto* group = ::new (&place->group) wait_group;
    const int members = 1 + round % 3;
    group->add(members);
    for (int i = 0; i < members; ++i) spawn(group);
    group->wait();
    group->~wait_group();
    place->bytes.fill(0xa5);
    if (round % 4 == 0) yield();
    for (const unsigned char b : place->bytes) wrong += b != 0xa5;
  }
  return wrong;
}

TEST_F(WaitGroup, MayBeDestroyedOnceWaitReturned) {
  const int rounds = scaled(30'000);
  const auto spawn = [](wait_group* group) { go([group] { group->done(); }); };
  EXPECT_EQ(destroyed_at_once(rounds, spawn), 0);
  EXPECT_EQ(run([&] { return destroyed_at_once(rounds, spawn); }), 0);
}

TEST_F(WaitGroup, MayBeDestroyedOnceWaitReturnedFromThreads) {
  const int rounds = scaled(30'000);
  // Threads that call done() on whatever group they are given.
  constexpr int helpers = 2;
  std::array<std::atomic<wait_group*>, helpers> mailbox{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < helpers; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        wait_group* group = mailbox[static_cast<std::size_t>(t)].exchange(nullptr);
        if (group != nullptr) {
          group->done();
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::size_t next = 0;
  const auto post = [&](wait_group* group) {
    for (wait_group* empty = nullptr;
         !mailbox[next++ % helpers].compare_exchange_strong(empty, group); empty = nullptr) {
      yield();
    }
  };
  EXPECT_EQ(destroyed_at_once(rounds / 10, post), 0);
  EXPECT_EQ(run([&] { return destroyed_at_once(rounds / 10, post); }), 0);
  stop = true;
  for (std::thread& t : threads) t.join();
}

TEST_F(WaitGroup, OnTheStackOfAGoroutineThatEnds) {
  std::atomic<int> sum{0};
  const int outer = scaled(2000);
  wait_group all;
  for (int i = 0; i < outer; ++i) {
    all.go([&] {
      wait_group mine;
      for (int k = 0; k < 10; ++k) {
        mine.go([&sum, k] {
          if (k % 3 == 0) yield();
          ++sum;
        });
      }
      mine.wait();
    });
  }
  all.wait();
  EXPECT_EQ(sum, 10 * outer);
}

// ---------------------------------------------------------------- go

TEST_F(WaitGroup, GoTakesMoveOnlyCallablesAndArguments) {
  std::atomic<int> sum{0};
  wait_group group;
  group.go([held = std::make_unique<int>(1), &sum] { sum += *held; });
  group.go([&sum](std::unique_ptr<int> p, int n) { sum += *p * n; }, std::make_unique<int>(10), 2);
  group.go([&sum](std::string&& s) { sum += static_cast<int>(s.size()); }, "three");
  int value = 0;
  group.go([](int& x) { x = 7; }, std::ref(value));
  struct Object {
    std::atomic<int>& total;
    void add(int n) { total += n; }
  } object{sum};
  group.go(&Object::add, &object, 100);
  std::array<char, 1000> large{};
  large[999] = 5;
  group.go([large, &sum] { sum += large[999]; });
  group.wait();
  EXPECT_EQ(sum, 1 + 20 + 5 + 100 + 5);
  EXPECT_EQ(value, 7);
}

template <class... Args>
concept can_go = requires(wait_group& group, Args&&... args) {
  group.go(std::forward<Args>(args)...);
};
static_assert(can_go<void (&)()>);
static_assert(!can_go<int>);
static_assert(!can_go<void (&)(int)>);
static_assert(!can_go<void (&)(std::string&), std::string&>);
static_assert(can_go<void (&)(std::string&), std::reference_wrapper<std::string>>);

struct CopyFailed : std::exception {};
struct Bad {
  Bad() = default;
  Bad(const Bad&) { throw CopyFailed(); }
};

TEST_F(WaitGroup, GoThatThrowsUndoesItsAdd) {
  const Bad bad;
  const auto bad_callable = [bad = std::optional<Bad>(std::in_place)] {};
  const auto attempts = [&] {
    wait_group group;
    int failed = 0;
    for (int i = 0; i < 100; ++i) {
      try {
        group.go([](const Bad&) {}, bad);
      } catch (const CopyFailed&) {
        ++failed;
      }
      try {
        group.go(bad_callable);
      } catch (const CopyFailed&) {
        ++failed;
      }
    }
    group.wait();  // hangs if one was counted
    return failed;
  };
  EXPECT_EQ(attempts(), 200);
  EXPECT_EQ(run(attempts), 200);
}

TEST_F(WaitGroup, GoThatThrowsReleasesTheWaiters) {
  wait_group group;
  std::atomic<bool> released{false};
  group.add(1);
  std::atomic<bool> waiting{false};
  go([&] {
    waiting = true;
    group.wait();
    released = true;
  });
  EXPECT_TRUE(wait_until([&] { return waiting.load(); }));
  struct Slow {
    wait_group* counted;
    explicit Slow(wait_group* c) : counted(c) {}
    Slow(const Slow& other) : counted(other.counted) {
      counted->done();  // the count is now the failing go's own
      throw CopyFailed();
    }
  };
  const Slow slow(&group);
  EXPECT_THROW(group.go([](const Slow&) {}, slow), CopyFailed);
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(released);
}

// What the members held is gone when wait() returns: nothing of theirs outlives it.
TEST_F(WaitGroup, MembersClosuresAreDestroyedBeforeWaitReturns) {
  int late = 0;
  for (int round = 0; round < scaled(5000); ++round) {
    const auto held = std::make_shared<int>(round);
    wait_group group;
    group.go([held] { static_cast<void>(held); });
    group.go([](const std::shared_ptr<int>&) {}, held);
    group.go([held, ballast = std::array<char, 200>{}] { static_cast<void>(ballast); });
    group.wait();
    late += held.use_count() != 1;
  }
  EXPECT_EQ(late, 0);
}

TEST_F(WaitGroup, MembersMayAddMembers) {
  std::atomic<int> ran{0};
  wait_group group;
  std::function<void(int)> grow = [&](int depth) {
    ++ran;
    if (depth == 0) return;
    group.go([&, depth] { grow(depth - 1); });
    group.go([&, depth] { grow(depth - 1); });
  };
  const int depth = internal::sanitizers_enabled ? 8 : 14;
  group.go([&] { grow(depth); });
  group.wait();
  EXPECT_EQ(ran, (2 << depth) - 1);
}

}  // namespace
}  // namespace gofer
