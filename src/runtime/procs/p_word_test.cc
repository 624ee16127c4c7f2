// gofer-test: once
// The P word's bits: owner, generation and state do not disturb each other.
#include "runtime/procs/p_word.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gofer::internal {
namespace {

constexpr PWordState all_states[] = {PWordState::none, PWordState::running, PWordState::retaking,
                                     PWordState::lost};

TEST(PWord, KeepsOwnerGenerationAndState) {
  for (const uint32_t owner : {0u, 1u, 2u, 10000u, PWord::max_owner}) {
    for (const uint64_t generation :
         {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, (uint64_t{1} << 42) - 1}) {
      for (const PWordState state : all_states) {
        const PWord word = PWord::make(owner, generation, state);
        EXPECT_EQ(word.owner(), owner);
        EXPECT_EQ(word.generation(), generation);
        EXPECT_EQ(word.state(), state);
        EXPECT_EQ(PWord(word.bits()), word);
      }
    }
  }
}

TEST(PWord, ChangesTheStateAlone) {
  const PWord word = PWord::make(PWord::max_owner, (uint64_t{1} << 42) - 1, PWordState::running);
  for (const PWordState state : all_states) {
    EXPECT_EQ(word.with(state).state(), state);
    EXPECT_EQ(word.with(state).owner(), word.owner());
    EXPECT_EQ(word.with(state).generation(), word.generation());
    EXPECT_EQ(word.with(state).with(PWordState::running), word);
  }
}

TEST(PWord, OfNobodyIsZero) {
  EXPECT_EQ(PWord().bits(), 0u);
  EXPECT_EQ(PWord().state(), PWordState::none);
  EXPECT_EQ(PWord(), PWord::make(0, 0, PWordState::none));
}

TEST(PWord, NextGenerationDiffersFromEveryStateOfThisOne) {
  const PWord now = PWord::make(7, 41, PWordState::running);
  const PWord next = PWord::make(7, 42, PWordState::running);
  for (const PWordState a : all_states) {
    for (const PWordState b : all_states) EXPECT_NE(now.with(a), next.with(b));
  }
}

}  // namespace
}  // namespace gofer::internal
