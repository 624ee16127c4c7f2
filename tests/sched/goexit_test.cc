// goexit: the stack is unwound and the closure destroyed, from any depth, in any number, whatever
// the goroutine was doing.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/quiescent.h"
#include "support/scaled.h"

namespace gofer {
namespace {

using test::ChildResult;
using test::quiescent;
using test::run_child;
using test::scaled;

using Goexit = test::QuiescentTest;

// Calls f in a goroutine, and waits until that is unwound.
template <class F>
void go_and_wait(F f) {
  wait_group group;
  group.go(f);
  group.wait();
}

// Notes its number when it is destroyed.
struct Note {
  std::vector<int>& notes;
  int number;
  Note(std::vector<int>& n, int i) : notes(n), number(i) {}
  Note(const Note&) = delete;
  ~Note() { notes.push_back(number); }
};

TEST_F(Goexit, RunsDestructorsInnermostFirst) {
  std::vector<int> notes;
  go_and_wait([&] {
    const Note one(notes, 1);
    const Note two(notes, 2);
    { const Note three(notes, 3); }
    const Note four(notes, 4);
    [&] {
      const Note five(notes, 5);
      [&] {
        const Note six(notes, 6);
        goexit();
      }();
    }();
    notes.push_back(100);
  });
  EXPECT_EQ(notes, (std::vector<int>{3, 6, 5, 4, 2, 1}));
}

template <std::size_t Ballast>
struct Counted {
  std::atomic<int>* alive;
  std::array<char, Ballast> ballast{};
  explicit Counted(std::atomic<int>* a) : alive(a) { ++*alive; }
  Counted(const Counted& other) : alive(other.alive) { ++*alive; }
  ~Counted() { --*alive; }
};

TEST_F(Goexit, DestroysClosureAndArguments) {
  std::atomic<int> alive{0};
  std::atomic<int> in_call{0};
  go(
      [&in_call, small = Counted<8>(&alive)](const Counted<8>&) {
        in_call += *small.alive;
        goexit();
      },
      Counted<8>(&alive));
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(alive, 0);
  EXPECT_GE(in_call, 2);
  go([large = Counted<1000>(&alive)](const Counted<1000>&) { goexit(); }, Counted<1000>(&alive));
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(alive, 0);
}

// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] void exit_below(int depth, std::atomic<int>& alive) {
  const Counted<16> here(&alive);
  if (depth < 0) return;
  if (depth == 0) goexit();
  exit_below(depth - 1, alive);
  ++alive;  // not reached
}

TEST_F(Goexit, UnwindsDeepStacks) {
  std::atomic<int> alive{0};
  std::atomic<int> deepest{0};
  for (const int depth : {0, 1, 10, 1000}) {
    go([&, depth] {
      const Counted<8> outer(&alive);
      ++deepest;
      exit_below(depth, alive);
      ++alive;
    });
  }
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(deepest, 4);
  EXPECT_EQ(alive, 0);
}

TEST_F(Goexit, GoesThroughLibraryCode) {
  std::atomic<int> alive{0};
  const std::function<void(int)> f = [&](int) {
    const Counted<8> here(&alive);
    goexit();
  };
  go([&, v = std::vector<int>{3, 1, 2}] {
    const std::string text(1000, 'x');
    for (const int i : v) std::invoke(f, i + static_cast<int>(text.size()));
  });
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(alive, 0);
}

TEST_F(Goexit, IsNoException) {
  std::vector<int> notes;
  go_and_wait([&] {
    const Note outer(notes, 2);
    try {
      const Note inner(notes, 1);
      goexit();
    } catch (const std::exception&) {
      notes.push_back(100);
    } catch (int) {
      notes.push_back(101);
    }
    notes.push_back(102);
  });
  EXPECT_EQ(notes, (std::vector<int>{1, 2}));
}

TEST_F(Goexit, GoesOnWhenCatchAllRethrows) {
  std::vector<int> notes;
  go_and_wait([&] {
    const Note outer(notes, 5);
    try {
      try {
        const Note inner(notes, 1);
        goexit();
      } catch (...) {
        notes.push_back(2);
        throw;
      }
    } catch (...) {
      notes.push_back(3);
      const Note in_handler(notes, 4);
      throw;
    }
    notes.push_back(100);
  });
  EXPECT_EQ(notes, (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST_F(Goexit, LeavesACatchBlock) {
  std::vector<int> notes;
  struct Thrown {
    std::shared_ptr<int> held;
  };
  const auto held = std::make_shared<int>(1);
  go_and_wait([&] {
    const Note outer(notes, 3);
    try {
      throw Thrown{held};
    } catch (const Thrown&) {
      const Note one(notes, 2);
      try {
        throw Thrown{held};
      } catch (const Thrown&) {
        const Note two(notes, 1);
        goexit();
      }
    }
    notes.push_back(100);
  });
  EXPECT_EQ(notes, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(held.use_count(), 1) << "an exception that was being handled is lost";
}

TEST_F(Goexit, LeavesNoExceptionToTheNextGoroutine) {
  std::atomic<int> wrong{0};
  run([&] {
    for (int i = 0; i < scaled(2000); ++i) {
      wait_group group;
      group.go([] {
        try {
          throw std::runtime_error("handled while the goroutine ends");
        } catch (const std::exception&) {
          goexit();
        }
      });
      group.go([&] { wrong += std::uncaught_exceptions() != 0 || std::current_exception(); });
      group.wait();
      wrong += std::uncaught_exceptions() != 0 || std::current_exception();
    }
  });
  EXPECT_EQ(wrong, 0);
}

// In a child, because the C++ runtime's answer to what it cannot do is std::terminate.
TEST_F(Goexit, GoesOnWhenCatchAllRethrowsInsideAnotherCatchBlock) {
  const ChildResult r = run_child("use_goexit", {"nested_catch"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "inner handler\nouter handler left\nended\n") << r;
}

// What destructors do on the way: block, go on elsewhere, throw and catch, start goroutines.
TEST_F(Goexit, LetsDestructorsBlockAndThrowInside) {
  struct Busy {
    wait_group& gate;
    std::atomic<int>& done;
    ~Busy() {
      yield();
      gate.wait();
      try {
        throw std::runtime_error("inside");
      } catch (const std::exception& e) {
        yield();
        if (std::string(e.what()) == "inside") ++done;
      }
      go([&d = done] { ++d; });
      yield();
    }
  };
  const int count = scaled(1000);
  wait_group gate;
  gate.add(1);
  std::atomic<int> done{0};
  for (int i = 0; i < count; ++i) {
    go([&] {
      const Busy outer{gate, done};
      [&] {
        const Busy inner{gate, done};
        goexit();
      }();
    });
  }
  EXPECT_EQ(num_goroutine(), static_cast<std::size_t>(count));
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(done, 4 * count);
}

TEST_F(Goexit, OfAGroupsMemberCallsDone) {
  std::atomic<int> ran{0};
  wait_group group;
  for (int i = 0; i < 100; ++i) {
    group.go(
        [&ran](const std::unique_ptr<int>& n) {
          ++ran;
          if (*n % 2 == 0) goexit();
        },
        std::make_unique<int>(i));
  }
  group.wait();
  EXPECT_EQ(ran, 100);
}

TEST_F(Goexit, OfManyAtOnce) {
  const int count = scaled(20'000);
  std::atomic<int> alive{0};
  std::atomic<int> reached{0};
  wait_group gate;
  gate.add(1);
  wait_group group;
  for (int i = 0; i < count; ++i) {
    group.go([&, i] {
      const Counted<8> here(&alive);
      if (i % 4 == 0) gate.wait();
      if (i % 3 == 0) yield();
      ++reached;
      exit_below(i % 20, alive);
    });
  }
  gate.done();
  group.wait();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(reached, count);
  EXPECT_EQ(alive, 0);
}

TEST_F(Goexit, OfTheMainGoroutineLetsTheOthersGoOn) {
  const ChildResult r = run_child("use_goexit", {"main"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "main unwound\nothers done: 100\n") << r;
}

TEST_F(Goexit, OfAnInnerRunsGoroutineLeavesTheOuterOneWaiting) {
  const ChildResult r = run_child("use_goexit", {"inner_run"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "others done: 100\n") << r;
}

}  // namespace
}  // namespace gofer
