// gofer-test: once
// Records of goroutines and their states, without a scheduler: legal and illegal transitions, free
// lists.
#include "runtime/goroutines/g.h"
#include "runtime/goroutines/transitions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gofer::internal {
namespace {

using enum GStatus;

constexpr GStatus all_states[] = {idle,    runnable, running,   syscall,
                                  waiting, dead,     copystack, preempted};

using Transitions = std::set<std::pair<std::string, std::string>>;

Transitions legal_transitions() {
  Transitions all;
  for (const GStatus from : all_states) {
    for (const GStatus to : all_states) {
      if (is_legal_transition(from, to)) all.emplace(status_name(from), status_name(to));
    }
  }
  return all;
}

// The rows `| from | to | ...` of the table, whose names are in backquotes.
Transitions documented_transitions() {
  std::ifstream page(GOFER_SOURCE_DIR "/docs/ARCHITECTURE.md");
  const std::regex row(R"(\| `(\w+)` \| `(\w+)` \|.*)");
  Transitions all;
  std::smatch names;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, names, row)) all.emplace(names[1], names[2]);
  }
  return all;
}

TEST(GStatus, LegalTransitionsAreThoseThatTheArchitectureShows) {
  EXPECT_EQ(documented_transitions(), legal_transitions());
}

TEST(GStatus, LegalTransitionsTakePlace) {
  for (const GStatus from : all_states) {
    for (const GStatus to : all_states) {
      if (!is_legal_transition(from, to)) continue;
      G g;
      g.status.store(from);
      check_transition(&g, from, to);
      EXPECT_EQ(g.status.load(), to);
    }
  }
}

TEST(GStatus, NumbersAreGos) {
  EXPECT_EQ(static_cast<int>(idle), 0);
  EXPECT_EQ(static_cast<int>(runnable), 1);
  EXPECT_EQ(static_cast<int>(running), 2);
  EXPECT_EQ(static_cast<int>(syscall), 3);
  EXPECT_EQ(static_cast<int>(waiting), 4);
  EXPECT_EQ(static_cast<int>(dead), 6);
  EXPECT_EQ(static_cast<int>(copystack), 8);
  EXPECT_EQ(static_cast<int>(preempted), 9);
}

TEST(GStatus, EveryStateHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const GStatus status : all_states) names.insert(status_name(status));
  EXPECT_EQ(names.size(), std::size(all_states));
  EXPECT_EQ(names.count("?"), 0u);
}

class GStatusDeathTest : public testing::Test {
 protected:
  // No other thread runs in this process: the fast way is safe, and there are many.
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "fast"; }
};

TEST_F(GStatusDeathTest, TransitionsThatWouldRunAGoroutineTwiceOrNeverAreFatal) {
  const std::pair<GStatus, GStatus> illegal[] = {
      {runnable, runnable}, {running, running},  {waiting, running},  {waiting, dead},
      {runnable, dead},     {runnable, waiting}, {idle, running},     {idle, waiting},
      {dead, runnable},     {dead, running},     {dead, dead},        {copystack, running},
      {running, syscall},   {syscall, running},  {waiting, preempted}};
  for (const auto& [from, to] : illegal) {
    ASSERT_FALSE(is_legal_transition(from, to));
    G g;
    g.status.store(from);
    EXPECT_EXIT(check_transition(&g, from, to), testing::ExitedWithCode(2), "illegal transition")
        << status_name(from) << " -> " << status_name(to);
  }
}

TEST_F(GStatusDeathTest, ATransitionFromAnotherStateThanExpectedIsFatal) {
  G g;
  g.id = 4711;
  g.status.store(waiting);
  EXPECT_EXIT(check_transition(&g, runnable, running), testing::ExitedWithCode(2),
              "goroutine 4711: illegal transition waiting \\(expected runnable\\) -> running");
}

TEST_F(GStatusDeathTest, SetStatusChecksInTestBuilds) {
  if (!checks_enabled) GTEST_SKIP() << "transitions are checked in builds with GOFER_CHECKS only";
  G g;
  g.status.store(waiting);
  EXPECT_EXIT(set_status(&g, runnable, running), testing::ExitedWithCode(2), "illegal transition");
}

TEST(GFreeList, IsLastInFirstOut) {
  GFreeList list;
  G gs[3];
  EXPECT_EQ(list.pop(), nullptr);
  for (G& g : gs) list.push(&g);
  EXPECT_EQ(list.count(), 3);
  EXPECT_EQ(list.pop(), &gs[2]);
  EXPECT_EQ(list.pop(), &gs[1]);
  EXPECT_EQ(list.count(), 1);
  EXPECT_EQ(list.pop(), &gs[0]);
  EXPECT_EQ(list.pop(), nullptr);
  EXPECT_EQ(list.count(), 0);
}

TEST(Records, RefillBringsThirtyTwoAndPrefersTheGlobalList) {
  GFreeList list;
  ASSERT_TRUE(refill_free_gs(list));
  EXPECT_EQ(list.count(), g_free_batch);
  drain_free_gs(list, 10);
  EXPECT_EQ(list.count(), 10);
  EXPECT_EQ(count_free_gs(), g_free_batch - 10);
  GFreeList other;
  ASSERT_TRUE(refill_free_gs(other));  // 22 used ones and 10 new ones
  EXPECT_EQ(other.count(), g_free_batch);
  EXPECT_EQ(count_free_gs(), 0);
  drain_free_gs(list, 0);
  drain_free_gs(other, 0);
  EXPECT_EQ(list.count() + other.count(), 0);
  EXPECT_EQ(count_free_gs(), 42);
}

TEST(Records, DrainOfAShortListMovesNothing) {
  GFreeList list;
  ASSERT_TRUE(refill_free_gs(list));
  const int before = count_free_gs();
  drain_free_gs(list, g_free_batch + 1);
  EXPECT_EQ(list.count(), g_free_batch);
  EXPECT_EQ(count_free_gs(), before);
  drain_free_gs(list, 0);
}

TEST(Records, AreDeadDistinctAlignedAndSeenByTheWalk) {
  std::set<G*> taken;
  for (int i = 0; i < 1000; ++i) {  // more than the first slab holds
    G* g = take_free_g();
    ASSERT_NE(g, nullptr);
    EXPECT_EQ(g->status.load(), dead);
    EXPECT_EQ(g->head, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(g) % alignof(G), 0u);
    EXPECT_EQ(g_of_closure(g->closure), g);
    EXPECT_TRUE(taken.insert(g).second);
  }
  std::set<G*> walked;
  for_each_g([](G* g, void* set) { static_cast<std::set<G*>*>(set)->insert(g); }, &walked);
  for (G* g : taken) EXPECT_EQ(walked.count(g), 1u);
  for (G* g : taken) put_free_g(g);
  EXPECT_GE(count_free_gs(), 1000);
}

TEST(Records, AGivenBackRecordIsTheNextToBeTaken) {
  G* g = take_free_g();
  put_free_g(g);
  EXPECT_EQ(take_free_g(), g);
  put_free_g(g);
}

}  // namespace
}  // namespace gofer::internal
