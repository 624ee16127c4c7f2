// What every goroutine did at one moment: see snapshot.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/goroutines/status.h"
#include "runtime/report/arena.h"
#include "runtime/report/stack_shape.h"

namespace gofer::internal {

struct G;
struct TraceRequest;

/// One goroutine, as a dump shows it.
struct SeenGoroutine {
  enum class Trace : uint8_t {
    none,         // not asked for
    known,        // `stack` has it
    not_started,  // `entry` is the function with which it begins
    unavailable,  // it is on a thread that did not answer
  };
  uint64_t id = 0;
  uint64_t parent_id = 0;
  uintptr_t create_pc = 0;
  uintptr_t entry = 0;
  uintptr_t callee =
      0;  // the first word of what it calls: of a pointer to a function, the function
  const char* name = nullptr;
  int64_t waited_ns = -1;  // -1: it does not wait
  uint32_t stack = 0;      // for Snapshot::stack
  GStatus status = GStatus::dead;
  WaitReason reason = WaitReason::none;
  Trace trace = Trace::none;
  bool bound = false;
  TraceRequest* request = nullptr;  // while the snapshot is taken
};

/// The calling goroutine, whose frames its own thread has walked already.
struct Caller {
  const G* g = nullptr;
  std::span<const uintptr_t> pcs;
};

class Snapshot {
 public:
  enum class World : uint8_t {
    stopped,  // by the caller
    ends,     // scheduling has stopped, and the process is about to end
  };
  struct Wanted {
    bool traces = true;
    int64_t waiting_for_ns = 0;  // leaves out goroutines that have waited for less
    bool without_caller = false;
  };

  /// Uses no malloc and no lock.
  void take(World world, const Caller& caller, const Wanted& wanted);

  std::span<SeenGoroutine> goroutines() { return {seen_.begin(), seen_.size()}; }
  /// Equal stacks have one number.
  std::span<const uintptr_t> stack(uint32_t number) const {
    return {stacks_[number].pcs, stacks_[number].frames};
  }
  size_t stacks() const { return stacks_.size(); }
  /// Goroutines for which there was no memory.
  size_t lost() const { return lost_; }
  /// For what is to be kept as long as the snapshot.
  Arena& arena() { return arena_; }

 private:
  struct Stack {
    uint64_t hash;
    const uintptr_t* pcs;
    uint32_t frames;
  };

  void add(G* g);
  void find_trace(SeenGoroutine& seen, G* g, GStatus stored);
  bool walk(SeenGoroutine& seen, const G* g);
  void ask(SeenGoroutine& seen, G* g);
  void wait_for_answers();
  void take_answer(SeenGoroutine& seen);
  void set_stack(SeenGoroutine& seen, std::span<const uintptr_t> pcs);
  bool grow_table();
  const char* keep_name(const char* name);

  Arena arena_;
  ArenaVector<SeenGoroutine> seen_;
  ArenaVector<Stack> stacks_;
  uint32_t* table_ = nullptr;  // open addressing: numbers of stacks, plus 1
  size_t table_size_ = 0;
  StackShapes shapes_;
  size_t lost_ = 0;
  int64_t now_ns_ = 0;
  World world_ = World::stopped;
  Caller caller_;
  Wanted wanted_;
};

}  // namespace gofer::internal
