// Programs that do nothing but wait for descriptors.
#include <gofer/gofer.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "../support/start_detached.h"
#include "../support/wait_until.h"
#include "runtime/goroutines/g.h"
#include "runtime/poll/netpoll.h"
#include "runtime/report/panic.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

gofer::fd event() { return gofer::fd(eventfd(0, EFD_CLOEXEC)); }

void signal_later(int native) {
  start_detached([native] {
    std::this_thread::sleep_for(500ms);  // four looks of the detector
    const std::uint64_t one = 1;
    require(write(native, &one, sizeof one) == sizeof one, "written");
  });
}

// Another process could write to it, even if this one does not.
int waits_for_descriptor() {
  const gofer::fd e = event();
  signal_later(dup(e.native_handle()));
  gofer::run([&] {
    for (int i = 0; i < 3; ++i) gofer::go([] { gofer::chan<int>(0).recv(); });
    std::uint64_t value;
    (void)e.read({&value, sizeof value});
  });
  say("completed");
  return 0;
}

// The main goroutine waits for one that waits for a descriptor.
int another_waits() {
  const gofer::fd e = event();
  signal_later(dup(e.native_handle()));
  gofer::run([&] {
    gofer::wait_group wg;
    wg.go([&] { e.wait_readable(); });
    wg.wait();
  });
  say("completed");
  return 0;
}

int thread_waits() {
  const gofer::fd e = event();
  gofer::wait_group wg;
  wg.add(1);
  std::thread t([&] {
    e.wait_readable();
    wg.done();
  });
  signal_later(dup(e.native_handle()));
  gofer::run([&] { wg.wait(); });
  t.join();
  say("completed");
  return 0;
}

// After all waits for descriptors have ended, the others can be found out again.
int deadlock_afterwards() {
  const gofer::fd e = event();
  gofer::run([&] {
    gofer::go([&] {
      e.set_deadline(1ms);
      std::error_code ec;
      e.wait_readable(ec);
    });
    gofer::chan<int>(0).recv();
  });
  return 0;
}

bool waits(gofer::internal::GStatus wanted) {
  struct Look {
    gofer::internal::GStatus wanted;
    bool found;
  } look{wanted, false};
  gofer::internal::for_each_g(
      [](gofer::internal::G* g, void* arg) {
        auto& l = *static_cast<Look*>(arg);
        if (g->status.load() == l.wanted) l.found = true;
      },
      &look);
  return look.found;
}

// The report of a deadlock that is none, for its traces.
int dump() {
  const gofer::fd e = event();
  start_detached([] {
    require(wait_until([] { return waits(gofer::internal::GStatus::waiting); }), "it waits");
    gofer::internal::fatal_deadlock("for the traces");
  });
  gofer::run([&] { e.wait_readable(); });
  return 0;
}

// The program ends, whatever goroutines and threads wait.
int ends_while_others_wait() {
  const gofer::fd e = event();
  start_detached([e] { e.wait_readable(); });
  gofer::run([&] {
    for (int i = 0; i < 10; ++i) {
      gofer::go([other = event()] { other.wait_readable(); });
    }
    gofer::go([e] { e.wait_readable(); });
    require(wait_until([] { return gofer::internal::poll_state.waiters.load() == 11; }), "waits");
  });
  say("completed");
  return 0;
}

// No goroutine is ever started here.
int threads_only() {
  const gofer::fd e = event();
  std::thread t([&] {
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t one = 1;
      (void)e.write({&one, sizeof one});
      e.wait_writable();
    }
  });
  std::uint64_t sum = 0;
  while (sum < 100) {
    std::uint64_t value = 0;
    require(e.read({&value, sizeof value}) == sizeof value, "read");
    sum += value;
  }
  t.join();
  e.set_deadline(5ms);
  std::error_code ec;
  e.wait_readable(ec);
  require(ec == std::errc::timed_out, "deadline");
  e.set_deadline(std::chrono::steady_clock::time_point::max());
  std::thread closer([&] { e.close(); });
  e.wait_readable(ec);
  require(ec == gofer::io_errc::closed, "closed");
  closer.join();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"waits_for_descriptor", waits_for_descriptor},
                       {"another_waits", another_waits},
                       {"thread_waits", thread_waits},
                       {"deadlock_afterwards", deadlock_afterwards},
                       {"dump", dump},
                       {"ends_while_others_wait", ends_while_others_wait},
                       {"threads_only", threads_only}});
}
