// Starting goroutines from within the scheduler, and the counts of goroutines.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"

namespace gofer {
class wait_group;
}

namespace gofer::internal {

struct G;
struct M;

/// The closure of the goroutine that run() starts.
struct MainClosure {
  void (*entry)(void*);
  void* arg;
  wait_group* returned;
};

inline constexpr int id_batch = 16;  // a P takes so many ids at a time

struct alignas(64) Goroutines {
  atomic<uint64_t> last_id{0};
  atomic<uint64_t> created{0};  // as P::created, but by callers without a P
  atomic<int32_t> runs{0};      // calls of run() that wait
  atomic<bool> main_called_goexit{false};
};

[[gnu::visibility("hidden")]] extern Goroutines goroutines;

/// How many goroutines were ever created, and how many of them have not ended. While goroutines
/// are created and end meanwhile, the second may be too large.
uint64_t count_created();
int64_t count_live();

/// The function with which g begins, for describe_entry, and what it calls. g has not run yet.
uintptr_t entry_of(const G* g);
const void* callable_of(const G* g);

/// Takes a record for a goroutine that the scheduler itself starts. The caller is on g0 with a P,
/// or inside, and starts it, or gives it to put_free_g. Returns nullptr without memory for one
/// more.
G* take_g_from_scheduler(M* m);
/// Starts g, whose whole life is entry(closure), where the closure holds the pointer `arg`.
void start_from_scheduler(M* m, G* g, void (*entry)(void* closure), void* arg);

}  // namespace gofer::internal
