// The P word: the one place that decides who holds a P.
//
// An M that runs user code holds its P without touching it, and may be blocked or busy in code that
// knows nothing of the runtime. A taker (sysmon, or an M that stops the world) must be able to take
// the P away then, and never while the M works on it. The word {owner, generation, state} decides:
//
//   taker: CAS running -> retaking; the M's in_doubt = 1; membarrier; if the M's in_runtime is 0:
//          CAS retaking -> lost, and the P is the taker's. Otherwise CAS retaking -> running.
//   M, entering the runtime: in_runtime = 1 (plain store); load in_doubt. 1: slow path. There,
//          in_doubt = 0 by an exchange, and a look at the word. If that has the value it had when
//          the M got the P, nothing has happened. `retaking` is answered by CAS retaking ->
//          running, which keeps the P; if that fails, or the word says anything else, the P is
//          lost.
//   M, leaving the runtime: in_runtime = 0 (release).
//
// Why it is right. The membarrier makes the M's plain store and load behave as if a full fence
// stood between them: either the store came before it, and the taker sees in_runtime == 1 and gives
// up; or the load comes after it, and the M sees in_doubt == 1, unless it took that back itself.
// If it did so after the taker's store, its exchange has read the 1, so the look that followed
// found `retaking`. Either way two compare-and-swaps meet in one word, and one wins. in_doubt alone
// says nothing: it may be left over from a taker that failed, or whose P was given back. An M that
// gives up its P and goes on outside sets it, too; a taker of that P fails, as the generation is
// another then. (The word could do without in_doubt, as the entry could look there at once: through
// two more pointers, which cost 2 to 4 ns a call, as measured.)
// The taker's acquire load of in_runtime == 0 pairs with the M's release store at leaving, so
// the taker sees all that the M did to the P. A generation is never used twice for one P, so a
// taker with an old value in hand fails. An M that lost its P keeps the pointer and the old
// value until its next entry; the pointer stays valid because Ps are never freed.
//
// One taker at a time (taking.lock). With two, a second `retaking` of the same generation could be
// answered by the first taker's compare-and-swap, whose membarrier is long past.
//
// A P that was taken while the world stood still may be given back to the M it came from, in the
// same generation, if that M has not noticed: lost -> running, under the scheduler's lock, under
// which also the M reacts to a loss. tests/model/p_word.pml checks all of this.
#pragma once

#include <cstdint>

namespace gofer::internal {

enum class PWordState : uint64_t { none = 0, running = 1, retaking = 2, lost = 3 };

/// Bits: state 0-1, owner (an M's number, from 1) 2-21, generation 22-63.
class PWord {
 public:
  constexpr PWord() = default;
  constexpr explicit PWord(uint64_t bits) : bits_(bits) {}

  static constexpr PWord make(uint32_t owner, uint64_t generation, PWordState state) {
    return PWord(generation << 22 | static_cast<uint64_t>(owner) << 2 |
                 static_cast<uint64_t>(state));
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr PWordState state() const { return static_cast<PWordState>(bits_ & 3); }
  constexpr uint32_t owner() const { return static_cast<uint32_t>(bits_ >> 2) & max_owner; }
  constexpr uint64_t generation() const { return bits_ >> 22; }
  constexpr PWord with(PWordState state) const {
    return PWord((bits_ & ~uint64_t{3}) | static_cast<uint64_t>(state));
  }
  constexpr bool operator==(const PWord&) const = default;

  static constexpr uint32_t max_owner = (1u << 20) - 1;

 private:
  uint64_t bits_ = 0;
};

}  // namespace gofer::internal
