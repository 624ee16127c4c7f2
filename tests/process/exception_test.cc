// Exceptions belong to the goroutine: what it throws, catches, rethrows and nests stays its own
// over every switch, on whatever thread it goes on.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
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

using Exceptions = test::QuiescentTest;

// An exception that says whose it is and counts its copies.
struct Mine : std::runtime_error {
  static inline std::atomic<int> alive{0};
  int owner;
  explicit Mine(int o) : std::runtime_error("of " + std::to_string(o)), owner(o) { ++alive; }
  Mine(const Mine& other) : std::runtime_error(other), owner(other.owner) { ++alive; }
  ~Mine() override { --alive; }
};

// What the goroutine sees of exceptions now is this, and it still is after a switch.
class View {
 public:
  View() : uncaught_(std::uncaught_exceptions()), current_(std::current_exception()) {}
  bool unchanged() const {
    return uncaught_ == std::uncaught_exceptions() && current_ == std::current_exception();
  }
  bool unchanged_over_yield() const {
    yield();
    return unchanged();
  }

 private:
  int uncaught_;
  std::exception_ptr current_;
};

bool clean() { return std::uncaught_exceptions() == 0 && !std::current_exception(); }

TEST_F(Exceptions, AreCaughtInAGoroutine) {
  const std::string what = run([] {
    try {
      throw Mine(1);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
  });
  EXPECT_EQ(what, "of 1");
  EXPECT_EQ(Mine::alive, 0);
}

// Every goroutine is inside its catch block at the same time.
TEST_F(Exceptions, ThousandsAreHandledAtTheSameTime) {
  const int count = scaled(10'000);
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
  run([&] {
    wait_group all_inside;
    all_inside.add(count);
    wait_group members;
    for (int i = 0; i < count; ++i) {
      members.go([&, i] {
        try {
          try {
            throw Mine(i);
          } catch (const Mine& e) {
            const View view;
            wrong += e.owner != i;
            all_inside.done();
            all_inside.wait();
            wrong += !view.unchanged();
            for (int round = 0; round < 1 + i % 3; ++round) wrong += !view.unchanged_over_yield();
            wrong += e.owner != i;
            throw;
          }
        } catch (const Mine& e) {
          yield();
          right += e.owner == i;
        }
        wrong += !clean();
      });
    }
    members.wait();
  });
  EXPECT_EQ(right, count);
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Mine::alive, 0);
}

// Goroutines park inside their catch blocks; this thread wakes them, and any processor takes them.
TEST_F(Exceptions, StayWithAGoroutineThatGoesOnInAnotherThread) {
  const int count = internal::sanitizers_enabled ? 50 : 500;
  std::atomic<int> wrong{0};
  std::atomic<int> migrations{0};
  const auto one_round = [&] {
    wait_group gate;
    gate.add(1);
    std::atomic<int> inside{0};
    for (int i = 0; i < count; ++i) {
      go([&, i] {
        const pid_t thrown_in = gettid();
        try {
          throw Mine(i);
        } catch (const Mine& e) {
          const View view;
          ++inside;
          gate.wait();
          migrations += gettid() != thrown_in;
          wrong += !view.unchanged() || e.owner != i;
          for (int round = 0; round < 5; ++round) wrong += !view.unchanged_over_yield();
          wrong += e.owner != i;
        }
        wrong += !clean();
      });
    }
    EXPECT_TRUE(wait_until([&] { return inside == count; }));
    gate.done();
    EXPECT_TRUE(quiescent());
  };
  // One processor may keep to one thread for ever.
  const int wanted = gomaxprocs(0) > 1 ? 20 : 0;
  EXPECT_TRUE(wait_until([&] {
    one_round();
    return migrations >= wanted;
  })) << migrations;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Mine::alive, 0);
}

// NOLINTNEXTLINE(misc-no-recursion)
void nest(int depth, int owner, std::atomic<int>& wrong) {
  if (depth == 0) return;
  try {
    throw Mine(owner * 100 + depth);
  } catch (const Mine& e) {
    const View view;
    nest(depth - 1, owner, wrong);
    wrong += !view.unchanged_over_yield();
    wrong += e.owner != owner * 100 + depth;
    try {
      throw;
    } catch (const std::runtime_error& again) {
      wrong += &again != &e;
      yield();
    }
    wrong += !view.unchanged();
  }
}

TEST_F(Exceptions, NestInsideEachOther) {
  std::atomic<int> wrong{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < scaled(2000); ++i) {
      group.go([&, i] {
        nest(i % 10, i, wrong);
        wrong += !clean();
      });
    }
    group.wait();
  });
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Mine::alive, 0);
}

// NOLINTNEXTLINE(misc-no-recursion)
void throw_nested(int depth) {
  yield();
  if (depth == 0) throw Mine(0);
  try {
    throw_nested(depth - 1);
  } catch (...) {
    yield();
    std::throw_with_nested(Mine(depth));
  }
}

// NOLINTNEXTLINE(misc-no-recursion)
int depth_of(const std::exception& e) {
  yield();
  try {
    std::rethrow_if_nested(e);
  } catch (const Mine& inner) {
    yield();
    return 1 + depth_of(inner);
  }
  return 0;
}

TEST_F(Exceptions, ThrownWithNestedOnesAreTakenApartOverYields) {
  std::atomic<int> wrong{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < scaled(1000); ++i) {
      const int depth = i % 8;
      group.go([&wrong, depth] {
        try {
          throw_nested(depth);
          ++wrong;
        } catch (const Mine& e) {
          wrong += e.owner != depth;
          wrong += depth_of(e) != depth;
        }
        wrong += !clean();
      });
    }
    group.wait();
  });
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Mine::alive, 0);
}

TEST_F(Exceptions, TravelBetweenGoroutinesByPointer) {
  const int count = scaled(1000);
  std::vector<std::exception_ptr> pointers(static_cast<std::size_t>(count));
  std::atomic<int> wrong{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < count; ++i) {
      group.go([&, i] {
        try {
          throw Mine(i);
        } catch (...) {
          yield();
          pointers[static_cast<std::size_t>(i)] = std::current_exception();
          yield();
        }
      });
    }
    group.wait();
    // Each is rethrown by three goroutines at once, one of them while it handles another.
    for (int i = 0; i < count; ++i) {
      for (int copy = 0; copy < 3; ++copy) {
        group.go([&, i, copy, p = pointers[static_cast<std::size_t>(i)]] {
          try {
            if (copy == 0) {
              try {
                throw std::system_error(std::make_error_code(std::errc::io_error));
              } catch (const std::system_error&) {
                std::rethrow_exception(p);
              }
            }
            std::rethrow_exception(p);
          } catch (const Mine& e) {
            for (int round = 0; round < 3; ++round) {
              yield();
              wrong += e.owner != i || std::current_exception() != p;
            }
          }
          wrong += !clean();
        });
      }
    }
    group.wait();
  });
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Mine::alive, count);
  pointers.clear();
  EXPECT_EQ(Mine::alive, 0);
}

// Destructors that run because an exception passes.
struct Waits {
  std::atomic<int>& wrong;
  wait_group& gate;
  int expected;  // exceptions in flight when it is destroyed
  ~Waits() {
    wrong += std::uncaught_exceptions() != expected;
    yield();
    wrong += std::uncaught_exceptions() != expected;
    gate.wait();
    wrong += std::uncaught_exceptions() != expected;
    yield();
  }
};

// Throws and catches inside, with another waiting destructor on the way of its own exception.
struct Throws {
  std::atomic<int>& wrong;
  wait_group& gate;
  ~Throws() {
    wrong += std::uncaught_exceptions() != 1;
    try {
      const Waits waits{wrong, gate, 2};
      throw Mine(-1);
    } catch (const Mine& e) {
      yield();
      wrong += e.owner != -1 || std::uncaught_exceptions() != 1;
    }
    wrong += std::uncaught_exceptions() != 1;
  }
};

TEST_F(Exceptions, LetDestructorsWaitAndThrowOnTheirWay) {
  const int count = scaled(2000);
  std::atomic<int> wrong{0};
  std::atomic<int> caught{0};
  wait_group gate;
  gate.add(1);
  for (int i = 0; i < count; ++i) {
    go([&, i] {
      try {
        const Waits outer{wrong, gate, 1};
        const Throws middle{wrong, gate};
        const Waits inner{wrong, gate, 1};
        throw Mine(i);
      } catch (const Mine& e) {
        yield();
        caught += e.owner == i;
      }
      wrong += !clean();
    });
  }
  std::atomic<int> unaffected{0};
  run([&] {
    for (int i = 0; i < 20; ++i) {
      yield();
      unaffected += clean();
    }
  });
  EXPECT_EQ(unaffected, 20);
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(caught, count);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Mine::alive, 0);
}

TEST_F(Exceptions, AreNotInheritedByNewGoroutines) {
  std::atomic<int> wrong{0};
  struct Spawner {
    std::atomic<int>& wrong;
    ~Spawner() {
      wait_group group;
      for (int i = 0; i < 10; ++i) group.go([w = &wrong] { *w += !clean(); });
      group.wait();
      wrong += std::uncaught_exceptions() != 1;
    }
  };
  run([&] {
    for (int i = 0; i < scaled(500); ++i) {
      try {
        const Spawner while_unwinding{wrong};
        throw Mine(i);
      } catch (const Mine& e) {
        wait_group group;
        group.go([&] { wrong += !clean(); });
        wrong += run([] { return !clean(); });
        group.wait();
        wrong += e.owner != i;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Exceptions, OfPlainThreadsAreTheirOwn) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < scaled(500); ++i) {
        try {
          throw Mine(t);
        } catch (const Mine& e) {
          const View view;
          wrong += run([] {
            try {
              throw Mine(77);
            } catch (const Mine& inner) {
              yield();
              return inner.owner != 77;
            }
          });
          wait_group group;
          group.go([&] { wrong += !clean(); });
          group.wait();
          wrong += !view.unchanged() || e.owner != t;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Exceptions, MayBeWaitedForWithinTheirOwnCopy) {
  struct Slow {
    int value;
    explicit Slow(int v) : value(v) {}
    Slow(const Slow& other) : value(other.value) {
      yield();
      yield();
    }
  };
  std::atomic<int> wrong{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < scaled(1000); ++i) {
      group.go([&, i] {
        const Slow original(i);
        try {
          throw original;      // copied into the exception
        } catch (Slow copy) {  // NOLINT(misc-throw-by-value-catch-by-reference): copied again
          wrong += copy.value != i;
        }
        wrong += !clean();
      });
    }
    group.wait();
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Exceptions, FromAFailedGoAreCaughtInTheCaller) {
  struct Bad {
    int owner;
    explicit Bad(int o) : owner(o) {}
    Bad(const Bad& other) : owner(other.owner) {
      yield();
      throw Mine(owner);
    }
  };
  std::atomic<int> right{0};
  const int count = scaled(1000);
  run([&] {
    wait_group group;
    for (int i = 0; i < count; ++i) {
      group.go([&, i] {
        const Bad bad(i);
        try {
          go([](const Bad&) {}, bad);
        } catch (const Mine& e) {
          yield();
          right += e.owner == i;
        }
      });
    }
    group.wait();
  });
  EXPECT_EQ(right, count);
}

}  // namespace
}  // namespace gofer
