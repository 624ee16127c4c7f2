// Programs that unlock what is not locked, and programs in which all wait for a lock, a
// condition or a permit for ever.
#include <gofer/gofer.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "../support/start_detached.h"
#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

gofer::mutex m;
gofer::rw_mutex rw;
gofer::cond ready;
gofer::semaphore permits(1);

// Calls f in a goroutine or in a thread, as the second argument says.
template <class F>
int in(F f) {
  const std::string_view where = scenario_argument;
  if (where == "thread") {
    std::thread(f).join();
  } else {
    gofer::run(f);
  }
  say("went on");
  return 0;
}

// ---- Mutex

int mutex_never_locked() {
  return in([] { m.unlock(); });
}

int mutex_after_use() {
  return in([] {
    m.lock();
    m.unlock();
    say("used");
    m.unlock();
  });
}

// Everything that can be done with one comes first: waiters, timeouts, a context, other owners.
int mutex_after_a_mixture() {
  return in([] {
    gofer::wait_group all;
    for (int i = 0; i < 8; ++i) {
      all.go([i] {
        for (int k = 0; k < 50; ++k) {
          if (i % 2 == 0) {
            std::lock_guard guard(m);
            gofer::yield();
          } else if (m.try_lock_for(20us)) {
            m.unlock();
          }
        }
      });
    }
    all.wait();
    m.lock();
    const auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 1ms);
    require(!m.lock(ctx), "the context ends first");
    all.go([] { m.unlock(); });
    all.wait();
    require(m.try_lock(), "it is free");
    m.unlock();
    say("used");
    m.unlock();
  });
}

// lock, unlock, unlock, by two that do not know of each other.
int mutex_unlocked_by_two() {
  return in([] {
    m.lock();
    gofer::wait_group other;
    other.go([] { m.unlock(); });
    other.wait();
    say("used");
    m.unlock();
  });
}

// ---- RWMutex

int rw_never_locked() {
  return in([] { rw.unlock(); });
}

int rw_shared_never_locked() {
  return in([] { rw.unlock_shared(); });
}

int rw_after_use() {
  return in([] {
    rw.lock();
    rw.unlock();
    rw.lock_shared();
    rw.unlock_shared();
    say("used");
    rw.unlock();
  });
}

int rw_shared_after_use() {
  return in([] {
    rw.lock();
    rw.unlock();
    rw.lock_shared();
    rw.lock_shared();
    rw.unlock_shared();
    rw.unlock_shared();
    say("used");
    rw.unlock_shared();
  });
}

int rw_unlock_of_a_reader() {
  return in([] {
    rw.lock_shared();
    say("used");
    rw.unlock();
  });
}

int rw_unlock_shared_of_a_writer() {
  return in([] {
    rw.lock();
    say("used");
    rw.unlock_shared();
  });
}

void use_rw_in_every_way() {
  gofer::wait_group all;
  for (int i = 0; i < 8; ++i) {
    all.go([i] {
      for (int k = 0; k < 50; ++k) {
        if (i % 4 == 0) {
          std::lock_guard guard(rw);
          gofer::yield();
        } else if (i % 4 == 1) {
          std::unique_lock lock(rw, 20us);
        } else {
          std::shared_lock lock(rw, 20us);
          gofer::yield();
        }
      }
    });
  }
  all.wait();
  require(rw.try_lock(), "it is free");
  rw.unlock();
  say("used");
}

int rw_after_a_mixture() {
  return in([] {
    use_rw_in_every_way();
    rw.unlock();
  });
}

int rw_shared_after_a_mixture() {
  return in([] {
    use_rw_in_every_way();
    rw.unlock_shared();
  });
}

// A writer waits for the reader; a goroutine that is neither unlocks for writing.
int rw_unlock_while_a_writer_waits() {
  return in([] {
    rw.lock_shared();
    gofer::go([] { rw.lock(); });
    require(wait_until([] {
              if (!rw.try_lock_shared()) return true;
              rw.unlock_shared();
              return false;
            }),
            "the writer waits");
    say("used");
    rw.unlock();
  });
}

// ---- All goroutines wait

template <class Wait>
int deadlock(Wait wait) {
  gofer::run(wait);
  return 0;
}

int waits_for_mutex() {
  return deadlock([] {
    m.lock();
    m.lock();
  });
}

int waits_to_read() {
  return deadlock([] {
    rw.lock();
    rw.lock_shared();
  });
}

int waits_to_write() {
  return deadlock([] {
    rw.lock_shared();
    rw.lock();
  });
}

int waits_for_condition() {
  return deadlock([] {
    std::unique_lock lock(m);
    ready.wait(lock);
  });
}

int waits_for_permit() {
  return deadlock([] {
    permits.acquire();
    permits.acquire();
  });
}

// A context that is never done does not make the wait a limited one; nor does a thread that waits
// in the same way.
int waits_with_context() {
  static const gofer::cancellable c = gofer::with_cancel(gofer::background());
  m.lock();
  rw.lock();
  permits.acquire();
  start_detached([] { static_cast<void>(m.lock(c.ctx)); });
  start_detached([] { rw.lock(); });
  return deadlock([] {
    gofer::go([] { static_cast<void>(m.lock(c.ctx)); });
    gofer::go([] { static_cast<void>(rw.lock_shared(c.ctx)); });
    gofer::go([] { static_cast<void>(rw.lock(c.ctx)); });
    gofer::go([] {
      gofer::mutex own;
      std::unique_lock lock(own);
      static_cast<void>(ready.wait(c.ctx, lock));
    });
    static_cast<void>(permits.acquire(c.ctx));
  });
}

// Waits that ended leave nothing behind: a thread that can still help keeps the report away.
template <class Wait>
int helped_by_a_thread(Wait wait) {
  std::thread(wait).join();
  std::atomic<bool> waits{false};
  std::thread helper([&] {
    require(wait_until([&] { return waits.load(); }), "the goroutine is about to wait");
    std::this_thread::sleep_for(300ms);  // several looks of the detector
    m.unlock();
  });
  m.lock();
  gofer::run([&] {
    waits = true;
    m.lock();
  });
  helper.join();
  say("completed");
  return 0;
}

// A lock whose unlock() signals: the signal comes before the waiter sleeps.
struct SignalsOnUnlock {
  void lock() {}
  void unlock() { ready.signal(); }
};

int helped_after_early_signal() {
  return helped_by_a_thread([] {
    SignalsOnUnlock lock;
    ready.wait(lock);
  });
}

int helped_after_early_signal_with_context() {
  return helped_by_a_thread([] {
    const auto [ctx, cancel] = gofer::with_cancel(gofer::background());
    SignalsOnUnlock lock;
    require(ready.wait(ctx, lock), "there was a signal");
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(
      argc, argv,
      {{"mutex_never_locked", mutex_never_locked},
       {"mutex_after_use", mutex_after_use},
       {"mutex_after_a_mixture", mutex_after_a_mixture},
       {"mutex_unlocked_by_two", mutex_unlocked_by_two},
       {"rw_never_locked", rw_never_locked},
       {"rw_shared_never_locked", rw_shared_never_locked},
       {"rw_after_use", rw_after_use},
       {"rw_shared_after_use", rw_shared_after_use},
       {"rw_unlock_of_a_reader", rw_unlock_of_a_reader},
       {"rw_unlock_shared_of_a_writer", rw_unlock_shared_of_a_writer},
       {"rw_after_a_mixture", rw_after_a_mixture},
       {"rw_shared_after_a_mixture", rw_shared_after_a_mixture},
       {"rw_unlock_while_a_writer_waits", rw_unlock_while_a_writer_waits},
       {"waits_for_mutex", waits_for_mutex},
       {"waits_to_read", waits_to_read},
       {"waits_to_write", waits_to_write},
       {"waits_for_condition", waits_for_condition},
       {"waits_for_permit", waits_for_permit},
       {"waits_with_context", waits_with_context},
       {"helped_after_early_signal", helped_after_early_signal},
       {"helped_after_early_signal_with_context", helped_after_early_signal_with_context}});
}
