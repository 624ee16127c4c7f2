// What is known of each goroutine, P and M at one point of a trace.
//
// Invariants: a goroutine has an M exactly if it runs or is in a system call, and is then that M's
// goroutine. A P has an M exactly if it runs or is in a system call, and is then that M's P.
// Records of Ms and Ps are never freed, those of goroutines when the goroutine ends, so pointers
// between them are valid.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/reader/error.h"
#include "trace/reader/event_types.h"
#include "trace/reader/id_map.h"

namespace gofer::tool {

struct MState;

/// The number of the last event that was counted for a goroutine or a P. It is valid in one
/// generation only: in each the count begins anew, with a status or a creation.
struct Sequence {
  uint64_t generation = 0;
  uint64_t number = 0;

  void restart(uint64_t in_generation) { *this = {in_generation, 0}; }
  bool is_next(uint64_t in_generation, uint64_t n) const {
    return generation == in_generation && n == number + 1;
  }
};

/// Stretches of time that events begin and end.
enum Range : uint8_t { range_stw = 1, range_mark_assist = 2, range_sweep = 4 };

struct GState {
  uint64_t id = none;
  Sequence sequence;
  MState* m = nullptr;
  GoStatus status = GoStatus::bad;
  uint8_t ranges = 0;
  bool has_regions = false;
};

struct PState {
  uint64_t id = none;
  Sequence sequence;
  MState* m = nullptr;
  ProcStatus status = ProcStatus::bad;
  uint8_t ranges = 0;
};

struct MState {
  uint64_t id = none;
  GState* g = nullptr;
  PState* p = nullptr;
  bool seen = false;  // an event of it, or about it, has come up
};

/// Records with stable addresses, found by id.
template <class State>
class StateTable {
 public:
  State* find(uint64_t id) const {
    State* const* found = index_.find(id);
    return found == nullptr ? nullptr : *found;
  }

  State& add(uint64_t id) {
    State* state;
    if (free_.empty()) {
      state = &states_.emplace_back();
    } else {
      state = free_.back();
      free_.pop_back();
    }
    *state = State();
    state->id = id;
    index_[id] = state;
    return *state;
  }

  void remove(State& state) {
    index_.erase(state.id);
    free_.push_back(&state);
  }

  size_t size() const { return index_.size(); }

 private:
  std::deque<State> states_;
  std::vector<State*> free_;
  IdMap<State*> index_;
};

}  // namespace gofer::tool
