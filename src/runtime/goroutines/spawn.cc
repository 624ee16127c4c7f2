// `go`: from a callable to a runnable goroutine. gofer/detail/spawn.h has the templates before it.
#include "runtime/goroutines/spawn.h"

#include <gofer/go.h>
#include <gofer/wait_group.h>

#include <cstring>
#include <new>

#include "runtime/base/frame_pointer.h"
#include "runtime/goroutines/local.h"
#include "runtime/goroutines/transitions.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/schedule.h"

namespace gofer::detail {

using namespace internal;

namespace {

G* take_record_of(P* p) {
  G* g = p->free_gs.pop();
  if (g == nullptr && refill_free_gs(p->free_gs)) g = p->free_gs.pop();
  return g;
}

G* take_record() {
  M* m = enter();
  if (m == nullptr) {
    ensure_started();
    return take_free_g();
  }
  G* g = take_record_of(m->p);
  leave(m);
  return g;
}

void give_back_record(G* g) {
  transition::discarded(g);
  const Inside inside;
  put_free_g(g);
}

char* copy_name(std::string_view name) {
  auto* copy = static_cast<char*>(std::malloc(name.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, name.data(), name.size());
  copy[name.size()] = '\0';
  return copy;
}

// What the options ask for, or false when it cannot be had.
bool apply(G* g, const go_options& options) {
  StackClass stack_class;
  if (!stack_class_for(options.stack_size, stack_class)) return false;
  g->stack_class = stack_class;
  if (!options.name.empty()) {
    g->name = copy_name(options.name);
    if (g->name == nullptr) return false;
  }
  if (g->stack_class == default_stack_class()) return true;
  // Its address space was not reserved with the record: it gets its stack now.
  char* stack;
  {
    const Inside inside;
    stack = take_stack(g->stack_class);
  }
  if (stack == nullptr) {
    std::free(g->name);
    g->name = nullptr;
    return false;
  }
  adopt_stack(g, stack);
  return true;
}

void make_runnable(M* m, G* g) {
  P* p = m->p;
  if (p->next_id == p->last_id) {
    p->next_id = goroutines.last_id.fetch_add(id_batch, relaxed) + 1;
    p->last_id = p->next_id + id_batch;
  }
  g->id = p->next_id++;
  bump(p->created);
  transition::created(m, g);
  put_local(p, g, true);
  wake_p();
}

// By a thread without a P.
void make_runnable(G* g) {
  g->id = goroutines.last_id.fetch_add(1, relaxed) + 1;
  goroutines.created.fetch_add(1, relaxed);
  create_globally(g);
  wake_p();
}

void prepare_record(G* g) {
  transition::taken(g);
  g->stack_class = default_stack_class();
  g->is_main = false;
}

}  // namespace

void* new_goroutine(const go_options* options) {
  G* g = take_record();
  if (g == nullptr) throw std::bad_alloc();
  prepare_record(g);
  if (options != nullptr && !apply(g, *options)) {
    give_back_record(g);
    throw std::bad_alloc();
  }
  return g->closure;
}

void discard_goroutine(void* closure) noexcept {
  G* g = g_of_closure(closure);
  std::free(g->name);
  g->name = nullptr;
  if (g->head != nullptr) {
    sanitizer_end(g->head->fiber);
    const Inside inside;
    put_stack(g->stack(), g->stack_class);
    g->head = nullptr;
  }
  give_back_record(g);
}

void start_goroutine(void* closure, void (*entry)(void*)) noexcept {
  G* g = g_of_closure(closure);
  g->entry = entry;
  g->create_pc = g->is_main ? 0 : reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  M* m = enter();
  if (m == nullptr) {
    if (process.forked.load(relaxed)) used_after_fork();
    g->parent_id = 0;
    make_runnable(g);
    return;
  }
  g->parent_id = m->curg->id;
  make_runnable(m, g);
  leave(m);
}

// The guard also runs when goexit() unwinds the goroutine. It holds the place alone, so that the
// frame pointer takes the register that the group would take.
void enter_member(void* place) {
  struct Leave {
    void* place;
    ~Leave() {
      const G* g = g_of_closure(place);
      if (g->head->locals != nullptr) destroy_locals(g->head->locals);
      static_cast<member_head*>(place)->group->done();
    }
  };
  GOFER_HAS_FRAME_POINTER;
  const Leave leave{place};
  static_cast<member_head*>(place)->body(static_cast<char*>(place) + sizeof(member_head));
}

void run_main(void (*entry)(void*), void* arg) {
  wait_group returned;
  returned.add(1);
  void* place = new_goroutine(nullptr);
  ::new (place) MainClosure{entry, arg, &returned};
  g_of_closure(place)->is_main = true;
  goroutines.runs.fetch_add(1, seq_cst);
  start_goroutine(place, [](void* p) {
    GOFER_HAS_FRAME_POINTER;
    auto* self = static_cast<MainClosure*>(p);
    self->entry(self->arg);
    // Not reached when goexit() ended it: run() does not return then, as in Go.
    self->returned->done();
  });
  returned.wait();
  goroutines.runs.fetch_sub(1, seq_cst);
}

}  // namespace gofer::detail

namespace gofer::internal {

constinit Goroutines goroutines;

uint64_t count_created() {
  uint64_t n = goroutines.created.load(relaxed);
  for (P* p : ps_ever()) n += p->created.load(relaxed);
  return n;
}

int64_t count_live() {
  uint64_t ended = 0;
  for (P* p : ps_ever()) ended += p->ended.load(acquire);
  return static_cast<int64_t>(count_created() - ended);
}

uintptr_t entry_of(const G* g) {
  if (g->is_main) {
    const auto* main = reinterpret_cast<const MainClosure*>(g->closure);
    return reinterpret_cast<uintptr_t>(main->entry);
  }
  if (g->entry != detail::enter_member) return reinterpret_cast<uintptr_t>(g->entry);
  const auto* head = reinterpret_cast<const detail::member_head*>(g->closure);
  return reinterpret_cast<uintptr_t>(head->body);
}

const void* callable_of(const G* g) {
  return g->closure + (g->entry == detail::enter_member ? sizeof(detail::member_head) : 0);
}

G* take_g_from_scheduler(M* m) {
  return m != nullptr ? detail::take_record_of(m->p) : take_free_g();
}

void start_from_scheduler(M* m, G* g, void (*entry)(void*), void* arg) {
  detail::prepare_record(g);
  ::new (g->closure)(void*)(arg);
  g->entry = entry;
  g->create_pc = 0;
  g->parent_id = 0;
  if (m != nullptr) {
    detail::make_runnable(m, g);
  } else {
    detail::make_runnable(g);
  }
}

}  // namespace gofer::internal
