// The sampler by itself: records of an M, a P and goroutines that no thread runs.
// gofer-test: once
#include "runtime/metrics/sampler.h"

#include <gofer/metrics.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "os/clock.h"
#include "runtime/procs/p.h"
#include "runtime/threads/m.h"

namespace gofer::internal {
namespace {

struct Times {
  uint64_t latencies = 0;
  uint64_t slices = 0;
};

class Sampler : public testing::Test {
 protected:
  Sampler() {
    m_->p = p_.get();
    m_->p_word = 77;
  }

  // As transition::count_runnable does it.
  bool becomes_runnable(G* g) {
    if (--m_->until_sample < 0) sample(m_.get(), g);
    return is_sampled(g);
  }
  static bool is_sampled(const G* g) { return (g->marks.load() & sample_mark) != 0; }

  Times times() const {
    debug::time_histogram latencies;
    debug::time_histogram slices;
    p_->latencies.add_to(latencies.counts, latencies.sum_ns);
    p_->slices.add_to(slices.counts, slices.sum_ns);
    return {latencies.count(), slices.count()};
  }

  std::unique_ptr<M> m_ = std::make_unique<M>();
  std::unique_ptr<P> p_ = std::make_unique<P>();
  G g_;
};

TEST_F(Sampler, StampsTheFirstGoroutineOfAnM) {
  EXPECT_TRUE(becomes_runnable(&g_));
  sampled_runs(m_.get(), &g_);
  EXPECT_FALSE(is_sampled(&g_));
  EXPECT_EQ(times().latencies, 1u);
  EXPECT_EQ(times().slices, 0u);
  sampled_slice_ends(m_.get());
  EXPECT_EQ(times().slices, 1u);
  EXPECT_EQ(m_->slice.begin_ns, 0);
}

TEST_F(Sampler, TakesFewSamplesOfManySwitchesAndCountsAll) {
  constexpr uint64_t all = 2'000'000;
  uint64_t samples = 0;
  for (uint64_t i = 0; i < all; ++i) {
    if (!becomes_runnable(&g_)) continue;
    ++samples;
    sampled_runs(m_.get(), &g_);
  }
  EXPECT_LE(samples, all / 100);  // one of 1,024; of fewer at first, and where the machine is slow
  EXPECT_LE(times().latencies, all);
  EXPECT_GE(times().latencies, all - 2048) << "but for those since the last sample";
}

TEST_F(Sampler, TakesMoreSamplesWhenThereIsLessToDo) {
  for (int i = 0; i < 100'000; ++i) {
    if (becomes_runnable(&g_)) sampled_runs(m_.get(), &g_);
  }
  EXPECT_GT(m_->sampling.distance, 100u);
  for (int i = 0; i < 20; ++i) {
    m_->sampling.last_ns -= 10'000'000;  // as if so much time had passed
    while (!becomes_runnable(&g_)) {
    }
    sampled_runs(m_.get(), &g_);
  }
  EXPECT_EQ(m_->sampling.distance, 1u);
}

TEST_F(Sampler, SamplesTheFirstGoroutineAfterALongSleepForItselfAlone) {
  m_->until_sample = 899;
  m_->sampling.counted = 1000;
  m_->sampling.last_ns = os::now_ns();
  sample_soon(m_.get());
  EXPECT_EQ(m_->until_sample, 899) << "the last one was a moment ago";
  m_->sampling.last_ns -= 1'000'000'000;
  sample_soon(m_.get());
  ASSERT_TRUE(becomes_runnable(&g_));
  sampled_runs(m_.get(), &g_);
  EXPECT_EQ(times().latencies, 1u);
  EXPECT_EQ(m_->sampling.distance, 1u);
}

TEST_F(Sampler, GivesTheBudgetBackAfterTheSlice) {
  p_->budget = 40;
  ASSERT_TRUE(becomes_runnable(&g_));
  sampled_runs(m_.get(), &g_);
  EXPECT_EQ(p_->budget, 0) << "so the goroutine leaves the P over g0";
  --p_->budget;  // count_switch
  sampled_slice_ends(m_.get());
  EXPECT_EQ(p_->budget, 39);
}

TEST_F(Sampler, LeavesTheBudgetOfAPausedGoroutineToItsThread) {
  p_->budget = 40;
  m_->paused = true;
  ASSERT_TRUE(becomes_runnable(&g_));
  sampled_runs(m_.get(), &g_);
  EXPECT_EQ(m_->budget, 40);
  p_->budget = 3;
  sampled_slice_ends(m_.get());
  EXPECT_EQ(p_->budget, 3);
  EXPECT_EQ(times().slices, 1u);
}

TEST_F(Sampler, RecordsNoSliceIfThePWasTaken) {
  p_->budget = 40;
  ASSERT_TRUE(becomes_runnable(&g_));
  sampled_runs(m_.get(), &g_);
  m_->p_word = 78;  // the same P, by another hold
  sampled_slice_ends(m_.get());
  EXPECT_EQ(times().slices, 0u);
  EXPECT_EQ(p_->budget, 0);
  EXPECT_EQ(m_->slice.begin_ns, 0);
}

TEST_F(Sampler, RecordsNothingOfAGoroutineThatGoesOnWithoutAP) {
  ASSERT_TRUE(becomes_runnable(&g_));
  m_->p = nullptr;
  sampled_runs(m_.get(), &g_);
  EXPECT_FALSE(is_sampled(&g_));
  EXPECT_EQ(m_->slice.begin_ns, 0);
  EXPECT_EQ(times().latencies, 0u);
}

TEST_F(Sampler, LeavesTheMarkOfTheScavengerAlone) {
  g_.marks = trim_mark;
  ASSERT_TRUE(becomes_runnable(&g_));
  EXPECT_EQ(g_.marks, trim_mark | sample_mark);
  sampled_runs(m_.get(), &g_);
  EXPECT_EQ(g_.marks, trim_mark);
}

TEST_F(Sampler, GoesOnWhenEverySlotIsTaken) {
  std::vector<G> many(20'000);
  std::vector<G*> sampled;
  for (G& g : many) {
    m_->until_sample = 0;
    if (becomes_runnable(&g)) sampled.push_back(&g);
  }
  EXPECT_GT(sampled.size(), 500u);
  EXPECT_LT(sampled.size(), many.size()) << "there are not so many slots";
  for (G* g : sampled) sampled_runs(m_.get(), g);
  m_->until_sample = 0;
  EXPECT_TRUE(becomes_runnable(&many[0])) << "the slots are free again";
  sampled_runs(m_.get(), &many[0]);
}

}  // namespace
}  // namespace gofer::internal
