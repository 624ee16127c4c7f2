// A snapshot of all goroutines.
//
// It is taken while the world is stopped: no goroutine begins, switches or ends then, so the stack
// of one that is parked or queued lies still, and the states of all fit together. Foreign threads
// may ready a goroutine or create one meanwhile, but none runs. Goroutines that are on threads
// (they compute, block, are paused, or wait for a P with their thread) are asked for their traces
// while the others are walked. A thread that cannot hear the question is left out.
//
// Between stopping and starting the world a snapshot uses neither malloc nor a lock that is held
// outside of the runtime, because any thread may have lost its P or be paused with that lock.
// Symbols come later. Stacks that are equal are kept once, so the memory for a hundred thousand
// goroutines that do the same is that of their headers.
//
// A report that ends the process cannot stop the world: it may be made inside, under any lock. It
// has stopped scheduling, but Ms that run may go on and switch a few times more. There the snapshot
// pins all goroutines by the scavenger's mark (scavenge.cc): an M that wants to run one waits until
// the mark is taken off.
//
// Rejected: pinning in place of stopping the world, always. An M that meets a pinned goroutine has
// to wait as well, spinning, and what the dump shows is not of one moment: a goroutine would wait
// for a lock, and the one that holds it would be shown long past it.
#include "runtime/report/snapshot.h"

#include <cstring>

#include "arch/arch.h"
#include "debug/unwind.h"
#include "os/clock.h"
#include "runtime/goroutines/g.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/metrics/sampler.h"
#include "runtime/procs/retake.h"
#include "runtime/report/trace_request.h"
#include "runtime/threads/m.h"
#include "runtime/wait/coarse_clock.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {
namespace {

constexpr int64_t us = 1'000;
constexpr int64_t ms = 1'000'000;
constexpr int64_t patience_ns = 2'000 * ms;  // for a thread that hears, but has no core
constexpr int64_t deaf_after_ns = 2 * ms;    // from then on it is worth asking the kernel
constexpr size_t most_frames = TraceRequest::most_frames;

uint64_t hash_of(std::span<const uintptr_t> pcs) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uintptr_t pc : pcs) {
    hash = (hash ^ pc) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

// It is on no thread: its registers are saved, if it has a stack.
bool lies_still(GStatus status) {
  return status == GStatus::waiting || status == GStatus::copystack || status == GStatus::runnable;
}

void pin_all() {
  for_each_g(
      [](G* g, void*) {
        if (lies_still(g->status.load(relaxed))) g->marks.fetch_or(trim_mark, relaxed);
      },
      nullptr);
  if (!fence_others()) os::sleep_ns(1 * ms);  // the marks are seen by then
}

void unpin_all() {
  for_each_g(
      [](G* g, void*) {
        if ((g->marks.load(relaxed) & trim_mark) == 0) return;
        g->marks.fetch_and(static_cast<uint8_t>(~trim_mark), release);
      },
      nullptr);
}

// The M on whose thread g is: it runs, is paused, or waits there for a P.
M* thread_of(const G* g, GStatus stored) {
  if (stored == GStatus::running) return g->m();
  M* own = g->own_m();
  return own != nullptr && own->curg == g ? own : nullptr;
}

}  // namespace

__attribute__((no_sanitize("thread"))) void Snapshot::take(World world, const Caller& caller,
                                                           const Wanted& wanted) {
  world_ = world;
  caller_ = caller;
  wanted_ = wanted;
  now_ns_ = os::now_ns();
  if (world == World::ends) pin_all();
  for_each_g([](G* g, void* self) { static_cast<Snapshot*>(self)->add(g); }, this);
  if (world == World::ends) unpin_all();
  if (wanted.traces) wait_for_answers();
}

__attribute__((no_sanitize("thread"))) void Snapshot::add(G* g) {
  const GStatus stored = g->status.load(acquire);
  if (stored == GStatus::dead || stored == GStatus::idle) return;
  const bool is_caller = g == caller_.g;
  if (is_caller && wanted_.without_caller) return;
  SeenGoroutine seen;
  seen.id = g->id;
  seen.status = is_caller ? GStatus::running : true_status(g);
  if (seen.status == GStatus::copystack) seen.status = GStatus::waiting;
  seen.parent_id = g->parent_id;
  seen.create_pc = g->create_pc;
  seen.bound = g->bound();
  if (seen.status == GStatus::waiting) {
    seen.reason = g->wait_reason;
    // While the process ends, one that is not pinned may be ending, too.
    if (const StackHead* head = g->head) seen.waited_ns = since_coarse(head->parked_at, now_ns_);
  }
  if (wanted_.waiting_for_ns > 0 && seen.waited_ns < wanted_.waiting_for_ns) return;
  // One that runs may just be freeing its name: its own thread says what it is.
  if (is_caller || lies_still(stored)) seen.name = keep_name(g->name);
  if (is_caller) {
    set_stack(seen, caller_.pcs);
  } else if (wanted_.traces) {
    find_trace(seen, g, stored);
  }
  if (!seen_.push(arena_, seen)) ++lost_;
}

__attribute__((no_sanitize("thread", "address"))) void Snapshot::find_trace(SeenGoroutine& seen,
                                                                            G* g, GStatus stored) {
  seen.trace = SeenGoroutine::Trace::unavailable;
  if (thread_of(g, stored) != nullptr) return ask(seen, g);
  if (!lies_still(stored)) return;
  const bool pinned = (g->marks.load(relaxed) & trim_mark) != 0;
  if (world_ == World::ends && g->has_stack() && !pinned) return;
  if (g->has_stack() && walk(seen, g)) return;
  seen.trace = SeenGoroutine::Trace::not_started;
  seen.entry = entry_of(g);
  std::memcpy(&seen.callee, callable_of(g), sizeof seen.callee);
}

// Returns false if g has its stack and has not run.
bool Snapshot::walk(SeenGoroutine& seen, const G* g) {
  arch::Registers registers = arch::saved_registers(g->head->sp);
  const StillStack stack{arch::pc_of(registers), arch::sp_of(registers),
                         reinterpret_cast<uintptr_t>(g->head)};
  if (const uint32_t number = shapes_.find(stack); number != StackShapes::none) {
    seen.stack = number;
    seen.trace = SeenGoroutine::Trace::known;
    return true;
  }
  uintptr_t pcs[most_frames];
  uintptr_t cfas[most_frames];
  const size_t n = unwind(registers, pcs, cfas);
  constexpr size_t first_frame_alone = 1;
  if (n <= first_frame_alone) return false;
  set_stack(seen, {pcs, n});
  if (seen.trace == SeenGoroutine::Trace::known) {
    shapes_.add(arena_, stack, {pcs, n}, {cfas, n}, seen.stack);
  }
  return true;
}

void Snapshot::ask(SeenGoroutine& seen, G* g) {
  auto* request = static_cast<TraceRequest*>(arena_.take(sizeof(TraceRequest)));
  if (request == nullptr) return;
  ::new (request) TraceRequest;
  M* m = thread_of(g, g->status.load(acquire));
  if (m == nullptr) return;
  request->expected = g;
  seen.request = request;
  ask_for_trace(m, *request);
}

// Those that answer do so within microseconds, or as soon as they have a core.
void Snapshot::wait_for_answers() {
  const int64_t start = os::now_ns();
  int64_t delay = 20 * us;
  for (;;) {
    const int64_t waited = os::now_ns() - start;
    const bool ask_kernel = waited >= deaf_after_ns || !preemption.has_handler.load(relaxed);
    bool all = true;
    for (SeenGoroutine& seen : seen_) {
      if (seen.request == nullptr || seen.request->answered.load(acquire)) continue;
      if (ask_kernel && is_deaf(seen.request->m) && withdraw(*seen.request)) {
        if (!seen.request->answered.load(acquire)) seen.request = nullptr;
        continue;
      }
      all = false;
    }
    if (all || waited >= patience_ns) break;
    os::sleep_ns(delay);
    if (delay < 1 * ms) delay *= 2;
  }
  for (SeenGoroutine& seen : seen_) {
    if (seen.request != nullptr) take_answer(seen);
  }
}

void Snapshot::take_answer(SeenGoroutine& seen) {
  TraceRequest& request = *seen.request;
  const int64_t end = os::now_ns() + patience_ns;
  while (!withdraw(request)) {
    if (os::now_ns() >= end) return arena_.leave_behind();
    os::sleep_ns(100 * us);
  }
  if (!request.answered.load(acquire) || request.g != request.expected) return;
  seen.name = keep_name(request.name);
  set_stack(seen, {request.pcs, request.frames});
}

void Snapshot::set_stack(SeenGoroutine& seen, std::span<const uintptr_t> pcs) {
  if (!wanted_.traces || pcs.empty()) return;
  if (2 * (stacks_.size() + 1) > table_size_ && !grow_table()) return;
  const uint64_t hash = hash_of(pcs);
  size_t place = hash % table_size_;
  for (; table_[place] != 0; place = (place + 1) % table_size_) {
    const Stack& there = stacks_[table_[place] - 1];
    if (there.hash != hash || there.frames != pcs.size()) continue;
    if (std::memcmp(there.pcs, pcs.data(), pcs.size_bytes()) == 0) break;
  }
  if (table_[place] == 0) {
    auto* copy = static_cast<uintptr_t*>(arena_.take(pcs.size_bytes()));
    if (copy == nullptr) return;
    std::memcpy(copy, pcs.data(), pcs.size_bytes());
    if (!stacks_.push(arena_, {hash, copy, static_cast<uint32_t>(pcs.size())})) return;
    table_[place] = static_cast<uint32_t>(stacks_.size());
  }
  seen.stack = table_[place] - 1;
  seen.trace = SeenGoroutine::Trace::known;
}

bool Snapshot::grow_table() {
  const size_t size = table_size_ == 0 ? 1024 : 4 * table_size_;
  auto* table = static_cast<uint32_t*>(arena_.take(size * sizeof(uint32_t)));
  if (table == nullptr) return false;
  for (size_t i = 0; i < stacks_.size(); ++i) {
    size_t place = stacks_[i].hash % size;
    while (table[place] != 0) place = (place + 1) % size;
    table[place] = static_cast<uint32_t>(i + 1);
  }
  table_ = table;
  table_size_ = size;
  return true;
}

const char* Snapshot::keep_name(const char* name) {
  constexpr size_t longest = 256;
  if (name == nullptr || name[0] == '\0') return nullptr;
  const size_t n = strnlen(name, longest);
  auto* copy = static_cast<char*>(arena_.take(n + 1));
  if (copy != nullptr) std::memcpy(copy, name, n);
  return copy;
}

}  // namespace gofer::internal
