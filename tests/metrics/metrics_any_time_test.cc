// debug::metrics() may be called at any time: before the runtime starts, while the world is
// stopped, beside changes of gomaxprocs, by goroutines and by threads. Counters never go back.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "runtime/metrics/table.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/stop_world.h"
#include "support/procs.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using debug::metrics;
using debug::metrics_snapshot;
using debug::time_histogram;
using internal::numbers;
using test::Procs;
using test::scaled;
using test::wait_until;

// The first test, because the runtime starts once.
TEST(MetricsAtAnyTime, AreZeroBeforeTheRuntimeStartsAndDoNotStartIt) {
  if (internal::process.started) GTEST_SKIP() << "it has started";
  const metrics_snapshot m = metrics();
  for (const internal::Number& number : numbers()) EXPECT_EQ(m.*number.value, 0u) << number.key;
  EXPECT_EQ(m.latency.count(), 0u);
  EXPECT_FALSE(debug::prometheus().empty());
  EXPECT_FALSE(debug::metrics_json().empty());
  EXPECT_FALSE(internal::process.started);
}

TEST(MetricsAtAnyTime, AreReadWhileTheWorldIsStopped) {
  gomaxprocs(0);
  ASSERT_TRUE(test::quiescent());
  static_cast<void>(internal::stop_the_world());
  const metrics_snapshot m = metrics();
  std::atomic<bool> read{false};
  go([&] { read = metrics().gomaxprocs != 0; });
  internal::start_the_world(nullptr);
  EXPECT_EQ(m.procs_stopped, m.gomaxprocs);
  EXPECT_EQ(m.procs_running, 0u);
  EXPECT_TRUE(wait_until([&] { return read.load(); }));
  ASSERT_TRUE(test::quiescent());
}

bool is_counter(const internal::Number& number) {
  return std::string_view(number.family).ends_with("_total");
}

bool went_back(const time_histogram& before, const time_histogram& after) {
  for (std::size_t i = 0; i < time_histogram::bucket_count; ++i) {
    if (after.counts[i] < before.counts[i]) return true;
  }
  return after.sum_ns < before.sum_ns;
}

// The name of a counter that is less than before, or nullptr.
const char* what_went_back(const metrics_snapshot& before, const metrics_snapshot& after) {
  for (const internal::Number& number : numbers()) {
    if (is_counter(number) && after.*number.value < before.*number.value) return number.key;
  }
  for (const internal::NumberOfTimes& times : internal::histograms()) {
    if (went_back(before.*times.value, after.*times.value)) return times.key;
  }
  return nullptr;
}

// Reads again and again until `stop`.
class Reader {
 public:
  void operator()() {
    metrics_snapshot before = metrics();
    while (!stop_) {
      const metrics_snapshot after = metrics();
      if (const char* name = what_went_back(before, after); name != nullptr) went_back_ = name;
      before = after;
      ++reads_;
      yield();
    }
  }
  void stop() { stop_ = true; }
  int reads() const { return reads_; }
  const char* went_back() const { return went_back_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> reads_{0};
  std::atomic<const char*> went_back_{nullptr};
};

void use_everything() {
  wait_group group;
  chan<int> c(1);
  for (int i = 0; i < 20; ++i) {
    group.go([&] {
      c.send(1);
      yield();
      static_cast<void>(c.recv());
      sleep_for(std::chrono::microseconds(10));
      blocking(handoff, [] {});
    });
  }
  group.wait();
}

TEST(MetricsAtAnyTime, NeverGoBackWhileTheNumberOfProcessorsChanges) {
  const Procs restored(gomaxprocs(0));
  Reader reader;
  std::thread thread([&] { reader(); });
  wait_group goroutine;
  goroutine.go([&] { reader(); });
  for (int i = 0; i < scaled(200); ++i) {
    gomaxprocs(1 + i % 7);
    use_everything();
  }
  EXPECT_TRUE(wait_until([&] { return reader.reads() >= 20; }));
  reader.stop();
  thread.join();
  goroutine.wait();
  EXPECT_EQ(reader.went_back(), nullptr);
  ASSERT_TRUE(test::quiescent());
}

TEST(MetricsAtAnyTime, StayWhenProcessorsArePutAside) {
  const Procs many(8);
  for (int i = 0; i < 20; ++i) use_everything();
  ASSERT_TRUE(test::quiescent());
  const metrics_snapshot before = metrics();
  gomaxprocs(1);
  const metrics_snapshot after = metrics();
  EXPECT_EQ(what_went_back(before, after), nullptr);
  EXPECT_EQ(after.goroutines_created, before.goroutines_created);
  EXPECT_EQ(after.switches, before.switches);
  EXPECT_EQ(after.latency.count(), before.latency.count());
  EXPECT_EQ(after.gomaxprocs, 1u);
}

TEST(MetricsAtAnyTime, AddUpWhileGoroutinesGoOn) {
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < 2 * gomaxprocs(0); ++i) {
    all.go([&] {
      while (!stop) use_everything();
    });
  }
  for (int i = 0; i < scaled(500); ++i) {
    const metrics_snapshot m = metrics();
    EXPECT_LE(m.goroutines_running, m.gomaxprocs);
    EXPECT_LE(m.procs_idle + m.procs_running + m.procs_stopped, 2 * m.gomaxprocs);
    EXPECT_LE(m.procs_in_calls, m.procs_running);
    EXPECT_LE(m.global_queue_tied + m.global_queue_urgent, m.global_queue);
    EXPECT_LE(m.local_queue_longest, m.local_queues);
    EXPECT_LE(m.threads_spinning, m.threads);
    EXPECT_LE(m.goroutines_waiting, m.goroutines);
  }
  stop = true;
  all.wait();
  ASSERT_TRUE(test::quiescent());
}

}  // namespace
}  // namespace gofer
