// Goroutines that block their threads beside some that wait for descriptors.
#include <gofer/gofer.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

// The first goroutine holds its thread until the second one, which waits for a descriptor, has
// answered: nothing else has run before, so there is no idle thread yet.
template <class Block>
int beside_blocked(Block block) {
  int gate[2];
  int ends[2];
  require(pipe(gate) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "descriptors");
  const gofer::fd in(ends[0]);
  std::thread peer([&] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(5ms);  // all have gone to sleep
      char answer = 0;
      require(write(ends[1], "x", 1) == 1 && read(ends[1], &answer, 1) == 1, "answered");
    }
    require(write(gate[1], "x", 1) == 1, "opened");
  });
  gofer::run([&] {
    gofer::wait_group wg;
    wg.go([&] {
      char byte;
      for (int i = 0; i < 20; ++i) (void)in.read({&byte, 1}), in.write_all({&byte, 1});
    });
    block([&] {
      char byte;
      require(read(gate[0], &byte, 1) == 1, "gate");
    });
    wg.wait();
  });
  peer.join();
  say("completed");
  return 0;
}

int beside_handoff() {
  return beside_blocked([](auto f) { gofer::blocking(gofer::handoff, f); });
}
int beside_announced() {
  return beside_blocked([](auto f) { gofer::blocking(f); });
}
int beside_unannounced() {
  return beside_blocked([](auto f) { f(); });
}

// The same with a foreign thread that waits: there is one goroutine, and it blocks.
template <class Block>
int thread_beside_blocked(Block block) {
  int gate[2];
  require(pipe(gate) == 0, "pipe");
  const gofer::fd e(eventfd(0, EFD_CLOEXEC));
  std::thread waiter([&] {
    for (int i = 0; i < 20; ++i) {
      std::uint64_t value = 0;
      require(e.read({&value, sizeof value}) == sizeof value, "read");
    }
    require(write(gate[1], "x", 1) == 1, "opened");
  });
  std::thread writer([native = e.native_handle()] {
    const std::uint64_t one = 1;
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(5ms);  // all have gone to sleep
      pollfd request{native, POLLIN, 0};
      while (poll(&request, 1, 0) != 0) std::this_thread::sleep_for(1ms);
      require(write(native, &one, sizeof one) == sizeof one, "written");
    }
  });
  gofer::run([&] {
    block([&] {
      char byte;
      require(read(gate[0], &byte, 1) == 1, "gate");
    });
  });
  waiter.join();
  writer.join();
  say("completed");
  return 0;
}

int thread_beside_handoff() {
  return thread_beside_blocked([](auto f) { gofer::blocking(gofer::handoff, f); });
}
int thread_beside_announced() {
  return thread_beside_blocked([](auto f) { gofer::blocking(f); });
}
int thread_beside_unannounced() {
  return thread_beside_blocked([](auto f) { f(); });
}

// Round after round one goroutine more blocks its thread, so that no idle thread may be left, while
// a goroutine and a thread answer to what comes from outside.
template <class Block>
int all_blocked(Block block) {
  int ends[2][2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[0]) == 0, "first pair");
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[1]) == 0, "second pair");
  const auto answer = [](const gofer::fd& in) {
    char byte;
    while (in.read({&byte, 1}) == 1) in.write_all({&byte, 1});
  };
  std::thread thread([in = gofer::fd(ends[0][0]), answer] { answer(in); });
  gofer::wait_group wg;
  wg.go([in = gofer::fd(ends[1][0]), answer] { answer(in); });
  for (int n = 1; n <= 40; ++n) {
    int gate[2];
    require(pipe(gate) == 0, "pipe");
    std::atomic<int> blocked{0};
    gofer::wait_group round;
    for (int i = 0; i < n; ++i) {
      round.go([&] {
        block([&] {
          char byte;
          ++blocked;
          require(read(gate[0], &byte, 1) == 0, "gate");
        });
      });
    }
    while (blocked != n) std::this_thread::sleep_for(1ms);
    for (const auto& pair : ends) {
      char byte = 0;
      require(write(pair[1], "x", 1) == 1 && read(pair[1], &byte, 1) == 1, "answered");
    }
    close(gate[1]);
    round.wait();
    close(gate[0]);
  }
  close(ends[0][1]);
  close(ends[1][1]);
  thread.join();
  wg.wait();
  say("completed");
  return 0;
}

int all_handoff() {
  return all_blocked([](auto f) { gofer::blocking(gofer::handoff, f); });
}
int all_announced() {
  return all_blocked([](auto f) { gofer::blocking(f); });
}
int all_unannounced() {
  return all_blocked([](auto f) { f(); });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"beside_handoff", beside_handoff},
                       {"beside_announced", beside_announced},
                       {"beside_unannounced", beside_unannounced},
                       {"thread_beside_handoff", thread_beside_handoff},
                       {"thread_beside_announced", thread_beside_announced},
                       {"thread_beside_unannounced", thread_beside_unannounced},
                       {"all_handoff", all_handoff},
                       {"all_announced", all_announced},
                       {"all_unannounced", all_unannounced}});
}
