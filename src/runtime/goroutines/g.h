// G: a goroutine. Its record, and where records come from. status.h has its states.
//
// Records are carved from slabs and never given back to the system: a pointer to a G stays a
// pointer to a G, whatever became of the goroutine, so that reports and thieves may read a stale
// one. A dead G waits in a free list, of its P first (64, of which 32 move to the global list, as
// in Go), for the next `go`.
//
// A record is small (two cache lines, the closure included) and has no stack until it first runs: a
// million queued goroutines are 128 MB of records, and the page faults of a million stacks do not
// happen. Slabs of records are on huge pages: 16,383 records a fault.
#pragma once

#include <gofer/detail/spawn.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/sanitizer.h"
#include "runtime/goroutines/status.h"
#include "runtime/stacks/stack.h"

namespace gofer::internal {

struct LocalTable;  // runtime/goroutines/local.h
struct M;
struct P;

/// __cxa_eh_globals of one thread or goroutine (Itanium C++ ABI): the exceptions being caught and
/// the number being thrown. It is switched with the goroutine.
struct ExceptionState {
  void* caught = nullptr;
  uint64_t uncaught = 0;  // unsigned int and padding
};

/// What a goroutine needs only once it runs. It lies at the top of its stack, in a page that is
/// touched anyway; the frames begin below it. It belongs to the goroutine itself and to the code
/// that switches to it or walks its stack. All others ask G, because a goroutine may have no stack.
struct alignas(64) StackHead {
  void* sp = nullptr;  // saved stack pointer; meaningful while the goroutine does not run
  ExceptionState exceptions;
  atomic<M*> m{nullptr};  // the M that runs it
  M* own_m = nullptr;     // the only M that may run it: lock_os_thread, or tied (retake.cc)
  LocalTable* locals = nullptr;
  int32_t locks = 0;            // calls of lock_os_thread to be undone
  uint32_t parked_at = 0;       // when it parked last: wait/coarse_clock.h
  uint16_t slice_used_us = 0;   // when it was paused before the end of its slice
  bool tied = false;            // own_m is not the user's doing
  bool exits = false;           // goexit() unwinds it
  uint8_t no_preempt = 0;       // scopes in which it is not to be paused
  uint8_t blocking_places = 0;  // taken by it, 0 or 1: sync/blocking_place.cc
  bool own_mask = false;        // bound because its signal mask is its own: thread_calls.cc
  uint8_t short_runs = 0;       // times that it parked, up to most_short_runs; less after a pause
  [[no_unique_address]] SanitizerFiber fiber;
};

/// A goroutine that has parked so often is expected to do so soon again. A pause makes it less by
/// as much: once it may have been without a core, rather.
inline constexpr uint8_t enough_short_runs = 4;
inline constexpr uint8_t most_short_runs = 2 * enough_short_runs;

struct alignas(64) G {
  StackHead* head = nullptr;  // nullptr while it has no stack: until it first runs
  G* link = nullptr;          // in a queue or free list
  atomic<GStatus> status{GStatus::dead};
  WaitReason wait_reason = WaitReason::none;
  StackClass stack_class : 7 {};
  bool is_main : 1 = false;   // started by run()
  atomic<uint8_t> marks{0};   // what is to be done before it runs: metrics/sampler.h
  atomic<uint32_t> trace{0};  // when it was mentioned last, and its events since: trace/writer.h
  void (*entry)(void*) = nullptr;
  uint64_t id = 0;
  uint64_t parent_id = 0;   // the goroutine that started it; 0: a foreign thread
  uintptr_t create_pc = 0;  // where `go` was called
  char* name = nullptr;     // heap, or nullptr

  alignas(detail::closure_align) std::byte closure[detail::closure_size];

  // All but the code that switches to a goroutine, or walks its stack, goes through these.
  bool has_stack() const { return head != nullptr; }
  /// It has not begun: it gets a stack when it first runs.
  bool needs_stack() const { return head == nullptr; }
  /// The M that runs it, or nullptr.
  M* m() const { return head != nullptr ? head->m.load(relaxed) : nullptr; }
  /// The only M that may run it, or nullptr: it is bound to that M's thread, or tied to it.
  M* own_m() const { return head != nullptr ? head->own_m : nullptr; }
  /// While it runs, so it has a stack.
  void set_m(M* m) { head->m.store(m, relaxed); }
  void bind_to(M* m) { head->own_m = m; }
  void tie_to(M* m) {
    head->own_m = m;
    head->tied = true;
  }
  void let_go() {
    head->own_m = nullptr;
    head->tied = false;
  }
  /// Waits for a P for the thread that it was paused or lost its P in.
  bool tied() const { return head != nullptr && head->tied; }
  /// It has called lock_os_thread.
  bool bound() const { return head != nullptr && head->locks > 0; }
  /// Has always parked soon, of late.
  bool is_short() const { return head != nullptr && head->short_runs >= enough_short_runs; }
  /// The lowest address of its stack, which is aligned to its size.
  char* stack() const {
    const auto at = reinterpret_cast<uintptr_t>(head);
    return reinterpret_cast<char*>(at & ~(stack_size(stack_class) - 1));
  }
};

static_assert(sizeof(G) == 128, "a G is two cache lines");
static_assert(sizeof(StackHead) == stack_head_size);

inline G* g_of_closure(void* closure) {
  return reinterpret_cast<G*>(static_cast<char*>(closure) - offsetof(G, closure));
}

/// A LIFO list of dead records.
class GFreeList {
 public:
  void push(G* g) {
    g->link = head_;
    head_ = g;
    ++count_;
  }
  G* pop() {
    G* g = head_;
    if (g != nullptr) {
      head_ = g->link;
      --count_;
    }
    return g;
  }
  int count() const { return count_; }

 private:
  G* head_ = nullptr;
  int count_ = 0;
};

inline constexpr int g_free_high = 64;  // a P's list at most
inline constexpr int g_free_batch = 32;

/// Takes up to `g_free_batch` dead records from the global list, or new ones, into `list`. False
/// when there is no memory for them, or no address space for their stacks.
bool refill_free_gs(GFreeList& list);
/// Moves all but `keep` records of a list to the global one.
void drain_free_gs(GFreeList& list, int keep);
/// One record for a caller without a P; nullptr as above.
G* take_free_g();
void put_free_g(G* g);

/// Dead records in the global list.
int count_free_gs();
/// The memory that all records take; what was never touched of it included.
size_t g_record_bytes();

/// Goes over every record that was ever used, in any state, a few at a time; new ones may be
/// missed.
class GCursor {
 public:
  /// nullptr: that was the last.
  G* next();

 private:
  void* slab_ = nullptr;  // nullptr: at the beginning
  size_t at_ = 0;
};

/// Calls f(g) for every record that was ever used, in any state.
void for_each_g(void (*f)(G* g, void* arg), void* arg);

}  // namespace gofer::internal
