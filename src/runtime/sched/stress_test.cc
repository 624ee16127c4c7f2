// Everything at once, in epochs drawn at random: goroutines that start, yield, park, block, compute
// and lock their threads; threads that start goroutines, change GOMAXPROCS, take Ps away and verify
// the scheduler. At the end of each epoch nothing may be missing. GOFER_STRESS_SEED=n begins with
// epoch n, GOFER_STRESS_SECONDS=n goes on for so long.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/process/settings.h"
#include "runtime/procs/p_table.h"
#include "runtime/sched/verify.h"
#include "support/event.h"
#include "support/takers.h"
#include "support/wait_until.h"

namespace gofer::internal {
namespace {

using test::Event;
using test::wait_until;

void compute(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) cpu_relax();
}

class Epoch {
 public:
  explicit Epoch(uint32_t seed) : random_(seed + 1) {}

  void run() {
    const int procs = 1 << pick(4);
    const bool takes = pick(2) == 0;
    const bool changes = pick(2) == 0;
    gomaxprocs(procs);
    start_disturbers(takes, changes);
    for (uint32_t actors = 1 + pick(8); actors > 0; --actors) start_actor(takes);
    if (pick(2) == 0) threads_.emplace_back([this, n = 1 + pick(200)] { start_from_thread(n); });
    actors_.wait();
    calm_ = true;
    for (auto& thread : threads_) thread.join();
    EXPECT_EQ(begun_, ended_);
    EXPECT_EQ(wrong_, 0);
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    verify_scheduler();
  }

 private:
  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  // A goroutine that is counted at its begin and its end.
  template <class F>
  void spawn(wait_group& group, F f) {
    begun_.fetch_add(1, relaxed);
    group.go([this, f]() mutable {
      f();
      ended_.fetch_add(1, relaxed);
    });
  }

  void start_disturbers(bool takes, bool changes) {
    if (takes) {
      for (uint32_t i = 1 + pick(2); i > 0; --i) threads_.emplace_back([this] { take_ps(); });
    }
    if (changes) threads_.emplace_back([this, seed = pick(1000)] { change_procs(seed); });
    if (pick(3) == 0) {
      threads_.emplace_back([this] {
        while (!calm_) {
          verify_scheduler();
          for (int i = 0; i < 20; ++i) std::this_thread::yield();
        }
      });
    }
  }

  void take_ps() {
    while (!calm_) {
      for (int i = 0; i < p_table.in_use.load(); ++i) test::retake(p_table.all[i].load());
      std::this_thread::yield();
    }
  }

  void change_procs(uint32_t seed) {
    std::minstd_rand random(seed + 1);
    while (!calm_) {
      gomaxprocs(static_cast<int>(random() % 8) + 1);
      for (uint32_t i = random() % 50; i > 0; --i) std::this_thread::yield();
    }
  }

  void start_from_thread(uint32_t n) {
    wait_group group;
    for (uint32_t i = 0; i < n; ++i) {
      spawn(group, [] { yield(); });
      if (i % 7 == 0) group.wait();
    }
    group.wait();
  }

  void start_actor(bool blocked_ones_lose_their_p) {
    const uint32_t n = 1 + pick(sanitizers_enabled ? 100 : 1000);
    switch (pick(8)) {
      case 0:
        spawn(actors_, [this, depth = 2 + pick(6)] { tree(depth); });
        break;
      case 1:
        for (uint32_t i = pick(20); i > 0; --i) {
          spawn(actors_, [n] {
            for (uint32_t k = 0; k < n; ++k) yield();
          });
        }
        break;
      case 2:
        ping_pong(n);
        break;
      case 3:
        ring(2 + pick(50), 1 + n / 20);
        break;
      case 4:
        spawn(actors_, [this, n] { locked(n / 4); });
        break;
      case 5:
        // With as many blocked goroutines as Ps, only a taker gets things going again.
        if (blocked_ones_lose_their_p) {
          spawn(actors_, [this, n] { block(n / 20); });
          break;
        }
        [[fallthrough]];
      case 6:
        for (uint32_t i = pick(6); i > 0; --i) {
          spawn(actors_, [n] {
            for (uint32_t k = 0; k < n / 50; ++k) {
              compute(2000);
              yield();
            }
          });
        }
        break;
      default:
        spawn(actors_, [this, n] { crowd(n * 2); });
    }
  }

  void tree(uint32_t depth) {
    if (depth == 0) return;
    wait_group children;
    for (int i = 0; i < 2; ++i) spawn(children, [this, depth] { tree(depth - 1); });
    compute(depth);
    children.wait();
  }

  void ping_pong(uint32_t rounds) {
    struct Pair {
      Event a;
      Event b;
    };
    auto pair = std::make_shared<Pair>();
    spawn(actors_, [pair, rounds] {
      for (uint32_t i = 0; i < rounds; ++i) {
        pair->b.set();
        pair->a.wait();
      }
    });
    spawn(actors_, [pair, rounds] {
      for (uint32_t i = 0; i < rounds; ++i) {
        pair->b.wait();
        pair->a.set();
      }
    });
  }

  void ring(uint32_t members, uint32_t laps) {
    auto events = std::make_shared<std::vector<Event>>(members);
    for (uint32_t i = 0; i < members; ++i) {
      spawn(actors_, [events, members, laps, i] {
        for (uint32_t lap = 0; lap < laps; ++lap) {
          (*events)[i].wait();
          if (i + 1 < members || lap + 1 < laps) (*events)[(i + 1) % members].set();
        }
      });
    }
    (*events)[0].set();
  }

  void locked(uint32_t rounds) {
    lock_os_thread();
    const int thread = os::thread_id();
    for (uint32_t i = 0; i < rounds; ++i) {
      wait_group child;
      spawn(child, [] { compute(10); });
      child.wait();
      if (i % 3 == 0) yield();
      wrong_ += os::thread_id() != thread;
    }
    if (rounds % 4 != 0) unlock_os_thread();  // else the thread ends with it
  }

  void block(uint32_t rounds) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    for (uint32_t i = 0; i < rounds; ++i) {
      wait_group child;
      spawn(child, [this, fd = ends[1]] { wrong_ += write(fd, "x", 1) != 1; });
      char c = 0;
      wrong_ += read(ends[0], &c, 1) != 1;
      child.wait();
    }
    close(ends[0]);
    close(ends[1]);
  }

  void crowd(uint32_t n) {
    wait_group members;
    const int thread = os::thread_id();
    int moved = 0;
    for (uint32_t i = 0; i < n; ++i) {
      spawn(members, [] {});
      moved += os::thread_id() != thread;  // `go` never moves its caller
    }
    members.wait();
    wrong_ += moved;
  }

  std::mt19937 random_;
  std::atomic<bool> calm_{false};
  std::atomic<int64_t> begun_{0};
  std::atomic<int64_t> ended_{0};
  std::atomic<int> wrong_{0};
  wait_group actors_;
  std::vector<std::thread> threads_;
};

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* value = getenv(name);
  return value != nullptr ? static_cast<uint32_t>(strtoul(value, nullptr, 10)) : otherwise;
}

TEST(Stress, EveryEpochEndsWithNothingMissing) {
  const int procs = gomaxprocs(0);
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(1000 * from_environment("GOFER_STRESS_SECONDS", 0) + 2500);
  // Four configurations of this test draw different epochs.
  const uint32_t first = static_cast<uint32_t>(procs) * 10'000 + (settings.gm ? 5'000 : 0);
  uint32_t seed = from_environment("GOFER_STRESS_SEED", first);
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    SCOPED_TRACE("GOFER_STRESS_SEED=" + std::to_string(seed));
    Epoch(seed++).run();
  }
  RecordProperty("epochs", static_cast<int>(seed - first));
  gomaxprocs(procs);
}

}  // namespace
}  // namespace gofer::internal
