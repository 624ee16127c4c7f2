// Taking Ps away from goroutines that are outside of the runtime: a thread of the test plays sysmon
// and takes every P it can get, all the time, while goroutines block, compute and use the runtime.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/verify.h"
#include "runtime/threads/m_table.h"
#include "support/compute.h"
#include "support/pipe.h"
#include "support/procs.h"
#include "support/scaled.h"
#include "support/takers.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::Inside;
using internal::m_table;
using internal::P;
using internal::p_table;
using internal::taking;
using internal::wake_state;
using internal::os::thread_id;
using test::compute;
using test::compute_until;
using test::Pipe;
using test::Procs;
using test::Takers;
using test::wait_until;

constexpr int scaled(int count) { return test::scaled(count, 10); }

using Retake = test::RetakeTest;

TEST_F(Retake, AnIdleProcessorIsNotTaken) {
  ASSERT_TRUE(wait_until([] { return wake_state.idle_p_count.load() == p_table.in_use.load(); }));
  for (int i = 0; i < p_table.in_use.load(); ++i) {
    EXPECT_FALSE(test::retake(p_table.all[i].load()));
  }
  EXPECT_EQ(wake_state.idle_p_count.load(), p_table.in_use.load());
}

TEST_F(Retake, AGoroutineInsideTheRuntimeKeepsItsProcessor) {
  bool taken = false;
  run([&] {
    Inside inside;
    P* p = inside.m()->p;
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) taken = taken || test::retake(p);
    }).join();
    taken = taken || inside.m()->p != p;
  });
  EXPECT_FALSE(taken);
}

TEST_F(Retake, ProcessorOfABlockedGoroutineRunsTheOneThatUnblocksIt) {
  Procs one(1);
  for (int round = 0; round < 100; ++round) {
    Pipe pipe;
    std::atomic<bool> reading{false};
    std::atomic<bool> good{false};
    wait_group done;
    done.go([&] {
      reading = true;
      good = pipe.read_one();
    });
    ASSERT_TRUE(wait_until([&] { return reading.load(); }));
    done.go([&] { static_cast<void>(pipe.write_one()); });
    P* p = p_table.all[0].load();
    EXPECT_TRUE(wait_until([&] { return good.load() || test::retake(p); }));
    done.wait();
    EXPECT_TRUE(good);
  }
}

TEST_F(Retake, ManyBlockedGoroutinesHoldNoProcessor) {
  constexpr int readers = 20;
  Takers sysmon;
  std::deque<Pipe> pipes(readers);
  std::atomic<int> good{0};
  std::atomic<int> reading{0};
  wait_group done;
  for (Pipe& pipe : pipes) {
    done.go([&] {
      for (int i = 0; i < 5; ++i) {
        reading.fetch_add(1);
        good += pipe.read_one();
        go([] {});
      }
    });
  }
  // With fewer Ps than readers, all get to read only if the blocked ones lose theirs.
  ASSERT_TRUE(wait_until([&] { return reading >= readers; }));
  done.go([&] {
    for (int i = 0; i < 5; ++i) {
      for (const Pipe& pipe : pipes) {
        static_cast<void>(pipe.write_one());
        yield();
      }
    }
  });
  done.wait();
  EXPECT_EQ(good, readers * 5);
  sysmon.stop();
  internal::verify_scheduler();
}

TEST_F(Retake, MoreComputingGoroutinesThanProcessorsAllAdvance) {
  Procs one(1);
  const uint64_t before = taking.retaken.load();  // by the real one
  Takers sysmon;
  constexpr int spinners = 6;
  std::atomic<int> met{0};
  wait_group done;
  for (int i = 0; i < spinners; ++i) {
    done.go([&] {
      const no_preempt by_sysmon;
      met.fetch_add(1);
      while (met < spinners) internal::cpu_relax();  // no call of the runtime
    });
  }
  done.wait();
  EXPECT_EQ(met, spinners);
  sysmon.stop();  // the last one may not have been counted yet
  EXPECT_GE(sysmon.taken() + static_cast<int64_t>(taking.retaken.load() - before), spinners - 1);
}

// Goroutines in every kind of code, each counted at its begin and its end.
class Mixture {
 public:
  void run(int goroutines, int rounds) {
    wait_group all;
    for (int i = 0; i < goroutines; ++i) {
      all.go([this, rounds, i] { work(static_cast<unsigned>(i), rounds); });
    }
    all.wait();
    EXPECT_EQ(begun_, ended_);
    EXPECT_EQ(wrong_, 0);
    EXPECT_EQ(finished_, goroutines);
  }

 private:
  void work(unsigned seed, int rounds) {
    std::minstd_rand random(seed + 1);
    for (int i = 0; i < rounds; ++i) {
      switch (random() % 6) {
        case 0:
          yield();
          break;
        case 1:
          compute(static_cast<int>(random() % 3000));
          break;
        case 2:
          start_and_wait(1);
          break;
        case 3:
          start_and_wait(static_cast<int>(random() % 10));
          break;
        case 4:
          go_without_moving();
          break;
        default:
          block();
      }
    }
    finished_.fetch_add(1);
  }

  void start_and_wait(int n) {
    wait_group children;
    std::atomic<int> ran{0};
    for (int i = 0; i < n; ++i) {
      begun_.fetch_add(1);
      children.go([&] {
        compute(20);
        ran.fetch_add(1);
        ended_.fetch_add(1);
      });
      compute(50);
    }
    children.wait();
    wrong_ += ran != n;
  }

  void go_without_moving() {
    wait_group child;
    const int thread = thread_id();
    compute(300);
    begun_.fetch_add(1);
    child.go([&] { ended_.fetch_add(1); });
    wrong_ += thread_id() != thread;
    child.wait();
  }

  void block() {
    Pipe pipe;
    wait_group child;
    begun_.fetch_add(1);
    child.go([&] {
      wrong_ += !pipe.write_one();
      ended_.fetch_add(1);
    });
    wrong_ += !pipe.read_one();  // at P=1, only a retake lets the child run
    child.wait();
  }

  std::atomic<int64_t> begun_{0};
  std::atomic<int64_t> ended_{0};
  std::atomic<int> finished_{0};
  std::atomic<int> wrong_{0};
};

TEST_F(Retake, NothingIsLostOrRunTwice) {
  Takers sysmon;
  Mixture mixture;
  mixture.run(8, scaled(5'000));
  EXPECT_GT(sysmon.taken(), 0);
  sysmon.stop();
  internal::verify_scheduler();
}

TEST_F(Retake, NothingIsLostOrRunTwiceWithOneProcessor) {
  Procs one(1);
  Takers sysmon;
  Mixture mixture;
  mixture.run(8, scaled(5'000));
  sysmon.stop();
  internal::verify_scheduler();
}

TEST_F(Retake, SeveralTakersAtOnceLoseNothing) {
  Takers sysmons(3);
  Mixture mixture;
  mixture.run(6, scaled(5'000));
  sysmons.stop();
  internal::verify_scheduler();
}

TEST_F(Retake, SeveralTakersAtOnceLoseNothingWithOneProcessor) {
  Procs one(1);
  Takers sysmons(3);
  Mixture mixture;
  mixture.run(6, scaled(5'000));
  sysmons.stop();
  internal::verify_scheduler();
}

TEST_F(Retake, GoesTogetherWithStoppingTheWorld) {
  Procs restore(4);
  Takers sysmon;
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    std::minstd_rand random(3);
    while (!stop) {
      gomaxprocs(static_cast<int>(random() % 6) + 1);
      internal::verify_scheduler();
      for (int i = 0; i < 20; ++i) std::this_thread::yield();
    }
  });
  wait_group done;
  done.go([&] {
    std::minstd_rand random(4);
    while (!stop) {
      gomaxprocs(static_cast<int>(random() % 6) + 1);
      internal::verify_scheduler();
      for (int i = 0; i < 20; ++i) yield();
    }
  });
  Mixture mixture;
  mixture.run(6, scaled(2'000));
  stop = true;
  changer.join();
  done.wait();
  sysmon.stop();
  internal::verify_scheduler();
}

// No taker gets the P of an M that is inside the runtime.
TEST_F(Retake, ProcessorIsUsedByOneThreadAtATime) {
  Takers sysmon(2);
  std::vector<std::atomic<int>> users(64);
  std::atomic<int> overlaps{0};
  std::atomic<int> changed{0};
  const int rounds = scaled(60'000);
  wait_group done;
  for (int i = 0; i < 6; ++i) {
    done.go([&] {
      for (int k = 0; k < rounds; ++k) {
        {
          Inside inside;
          P* p = inside.m()->p;
          const int me = thread_id();
          overlaps += users[p->id].exchange(me) != 0;
          compute(k % 20);
          overlaps += users[p->id].exchange(0) != me;
          changed += inside.m()->p != p;
        }
        compute(k % 100);
        if (k % 64 == 0) yield();
      }
    });
  }
  done.wait();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(changed, 0);
}

// Hardly outside when a taker looks, and then inside for long: a taker that misses the entry hands
// the P to the other goroutine's M while this one still uses it.
TEST_F(Retake, EntryAtTheMomentOfATakeIsNotMissed) {
  Procs one(1);
  std::atomic<int> user{0};
  std::atomic<int> overlaps{0};
  std::atomic<bool> stop{false};
  const int rounds = scaled(5'000);
  std::thread taker([&] {
    P* p = p_table.all[0].load();
    while (!stop) {
      // Strikes as soon as it sees the owner outside.
      const internal::PWord word(p->word.load());
      if (word.state() != internal::PWordState::running) continue;
      if (m_table[word.owner()].load()->in_runtime.load() == 0) test::retake(p);
    }
  });
  wait_group done;
  for (int me = 1; me <= 2; ++me) {
    done.go([&, me] {
      for (int k = 0; k < rounds; ++k) {
        {
          Inside inside;
          overlaps += user.exchange(me) != 0;
          compute(k % 8 == 0 ? 10'000 : 0);
          overlaps += user.exchange(0) != me;
        }
        compute(k * 7 % 24);
      }
    });
  }
  done.wait();
  stop = true;
  taker.join();
  EXPECT_EQ(overlaps, 0);
}

// The test pretends that an M spins. It does not help: the P with work, or the one that the work in
// the global queue waits for, must get an M of its own.
TEST_F(Retake, ProcessorIsHandedOffToWorkEvenIfAThreadSpins) {
  Procs one(1);
  for (const bool local : {false, true}) {
    ASSERT_TRUE(wait_until(
        [] { return wake_state.idle_p_count.load() == 1 && wake_state.spinning_ms.load() == 0; }));
    std::atomic<bool> running{false};
    std::atomic<bool> end{false};
    std::atomic<bool> ran{false};
    wait_group done;
    done.go([&] {
      if (local) done.go([&] { ran = true; });
      running = true;
      compute_until(end);
    });
    EXPECT_TRUE(wait_until([&] { return running.load(); }));
    wake_state.spinning_ms.fetch_add(1);
    if (!local) done.go([&] { ran = true; });
    P* p = p_table.all[0].load();
    EXPECT_TRUE(wait_until([&] { return test::retake(p); }));
    EXPECT_TRUE(wait_until([&] { return ran.load(); }, std::chrono::seconds(20)));
    wake_state.spinning_ms.fetch_sub(1);
    end = true;
    done.wait();
  }
}

TEST_F(Retake, ThreadThatLostItsProcessorTakesAnIdleOne) {
  Procs two(2);
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> running{false};
    std::atomic<bool> stop{false};
    bool stayed = false;
    wait_group done;
    done.go([&] {
      running = true;
      const int thread = thread_id();
      compute_until(stop);
      go([] {});
      stayed = thread_id() == thread;
    });
    ASSERT_TRUE(wait_until([&] { return running.load(); }));
    bool taken = false;
    EXPECT_TRUE(wait_until([&] {
      for (int i = 0; i < 2; ++i) taken = taken || test::retake(p_table.all[i].load());
      return taken;
    }));
    stop = true;
    done.wait();
    EXPECT_TRUE(stayed);
  }
}

}  // namespace
}  // namespace gofer
