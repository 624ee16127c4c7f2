// gofer-test: stress
// Traces of programs that do everything at once, begun and ended at any moment: each has to be
// valid. A trace that is not is kept, and the failure names it.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/procs.h"
#include "support/scaled.h"
#include "support/traced.h"

namespace gofer::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::chrono::milliseconds stress_time() {
  const char* seconds = std::getenv("GOFER_STRESS_SECONDS");
  if (seconds != nullptr) return std::chrono::seconds(std::atoi(seconds));
  return 3s;
}

// Goroutines and threads that do all that the scheduler has transitions for, until they are told to
// stop.
class Storm {
 public:
  Storm() {
    for (int i = 0; i < 4; ++i) {
      start([this] { send(); });
      start([this] { receive(); });
      start([this] { lock(); });
      start([this] { sleep(); });
      start([this] { spawn(); });
      start([this] { announce(); });
      start([this] { yield_often(); });
      start([this] { select_often(); });
      start([this] { use_pipe(); });
    }
    for (int i = 0; i < 2; ++i) {
      start([this] { block_unannounced(); });
      start([this] { compute(); });
      start([this] { stay_on_thread(); });
      start([this] { hand_off(); });
      threads_.emplace_back([this] { send(); });
      threads_.emplace_back([this] { spawn_from_thread(); });
    }
    start([this] { run_timers(); });
    start([this] { nest_calls(); });
    start([this] { mark(); });
    start([this] { change_procs(); });
  }

  ~Storm() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
    all_.wait();
    fresh_.wait();
  }

 private:
  template <class F>
  void start(F f) {
    all_.go(f);
  }

  void send() {
    while (!stop_) {
      if (!values_.try_send(1)) std::this_thread::yield();
      (void)values_.send_for(1ms, 2);
    }
  }
  void receive() {
    while (!stop_) (void)values_.recv_for(1ms);
  }
  void lock() {
    while (!stop_) {
      m_.lock();
      if ((++shared_ & 7) == 0) yield();
      m_.unlock();
    }
  }
  void sleep() {
    while (!stop_) sleep_for(std::chrono::microseconds(100));
  }
  void spawn() {
    while (!stop_) {
      wait_group some;
      for (int i = 0; i < 20; ++i) some.go([] { yield(); });
      some.wait();
    }
  }
  void spawn_from_thread() {
    while (!stop_) {
      wait_group some;
      for (int i = 0; i < 5; ++i) some.go([] { yield(); });
      some.wait();
      std::this_thread::sleep_for(200us);
    }
  }
  void announce() {
    for (int i = 0; !stop_; ++i) {
      blocking([&] { std::this_thread::sleep_for(std::chrono::microseconds(i % 5 * 50)); });
    }
  }
  void hand_off() {
    while (!stop_) blocking(handoff, [] { std::this_thread::sleep_for(300us); });
  }
  void nest_calls() {
    while (!stop_) {
      blocking([&] {
        blocking([] { std::this_thread::sleep_for(100us); });
        sleep_for(100us);
        blocking(handoff, [] { std::this_thread::sleep_for(100us); });
      });
    }
  }
  void yield_often() {
    while (!stop_) yield();
  }
  void select_often() {
    chan<int> own(1);
    while (!stop_) {
      select(on_recv(values_, [](std::optional<int>) {}), on_send(own, 1, [] {}),
             on_default([] { yield(); }));
      (void)own.try_recv();
      sleep_for(50us);
    }
  }
  void use_pipe() {
    int ends[2];
    if (pipe(ends) != 0) return;
    fd in(ends[0]);
    fd out(ends[1]);
    wait_group reader;
    reader.go([&] {
      char c[1];
      std::error_code ec;
      while (in.read(c, ec) == 1) {
      }
    });
    while (!stop_) {
      out.write_all(std::string_view("x"));
      sleep_for(100us);
    }
    out.close();
    reader.wait();
  }
  void block_unannounced() {
    while (!stop_) {
      std::this_thread::sleep_for(2ms);
      std::vector<int> some(1000);
      shared_ += some[10];
    }
  }
  void compute() {
    while (!stop_) {
      for (int i = 0; i < scaled(3'000'000) && !stop_; ++i) {
      }
      if (internal::tsan_enabled || ++shared_ % 3 == 0) yield();
    }
  }
  void stay_on_thread() {
    while (!stop_) {
      lock_os_thread();
      yield();
      sleep_for(100us);
      unlock_os_thread();
    }
  }
  void run_timers() {
    while (!stop_) {
      fresh_.add(1);
      (void)after_func(100us, [this] { fresh_.done(); });
      sleep_for(300us);
    }
  }
  void mark() {
    while (!stop_) {
      const trace::task task("task");
      const trace::region region(task, "region");
      trace::log(task, "value", std::to_string(shared_));
      trace::counter("shared", shared_);
      sleep_for(200us);
    }
  }
  void change_procs() {
    const int before = gomaxprocs(0);
    std::minstd_rand random(7);
    while (!stop_) {
      sleep_for(std::chrono::milliseconds(3 + random() % 10));
      gomaxprocs(static_cast<int>(1 + random() % 9));
    }
    gomaxprocs(before);
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> shared_{0};
  chan<int> values_{4};
  mutex m_;
  wait_group all_;
  wait_group fresh_;
  std::vector<std::thread> threads_;
};

TEST(TraceStress, TracesBeginAndEndAtAnyMoment) {
  const auto end = Clock::now() + stress_time();
  std::minstd_rand random(static_cast<unsigned>(getpid()));
  int traces = 0;
  const Storm storm;
  while (Clock::now() < end && !HasFailure()) {
    const auto length = std::chrono::milliseconds(random() % 4 == 0 ? 1500 : random() % 100);
    const TraceFile file;
    if (random() % 2 == 0) {
      trace::start(file.path());
      std::this_thread::sleep_for(length);
      trace::stop();
    } else {
      wait_group one;
      one.go([&] {
        trace::start(file.path());
        sleep_for(length);
        trace::stop();
      });
      one.wait();
    }
    file.read();
    if (has_go() && length < 100ms && ++traces % 8 == 0) {
      EXPECT_TRUE(is_accepted_by_go(file.path())) << file.path();
    }
  }
}

TEST(TraceStress, FlightRecordersWriteAtAnyMoment) {
  const auto end = Clock::now() + stress_time();
  std::minstd_rand random(static_cast<unsigned>(getpid()));
  int traces = 0;
  const Storm storm;
  while (Clock::now() < end && !HasFailure()) {
    const auto keep = std::chrono::milliseconds(1 + random() % 200);
    trace::flight_recorder recorder({.keep = keep, .bytes = size_t{1} << (18 + random() % 6)});
    recorder.start();
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      const TraceFile file;
      recorder.write(file.path());
      file.read();
      if (has_go() && ++traces % 16 == 0) {
        EXPECT_TRUE(is_accepted_by_go(file.path())) << file.path();
      }
    }
    recorder.stop();
  }
}

TEST(TraceStress, TenThousandGoroutines) {
  constexpr int n = scaled(10'000);
  wait_group all;
  wait_group parked;
  chan<int> go_on(0);
  parked.add(n);
  for (int i = 0; i < n; ++i) {
    all.go([&] {
      parked.done();
      while (go_on.recv()) yield();
    });
  }
  parked.wait();
  const TraceContents trace = traced([&] {
    run([&] {
      for (int i = 0; i < n; ++i) go_on.send(i);
    });
    std::this_thread::sleep_for(1200ms);
    go_on.close();
    all.wait();
  });
  EXPECT_GE(trace.count("GoStatus"), static_cast<uint64_t>(n));
  EXPECT_GE(trace.count("GoUnblock"), static_cast<uint64_t>(n));
}

}  // namespace
}  // namespace gofer::test
