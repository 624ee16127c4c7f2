#include "runtime/watch/prologue.h"

#include <cerrno>

#include "arch/arch.h"
#include "runtime/procs/current.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {

// Not inline, so a caller links the hook and what it calls.
uintptr_t* prologue_guard() { return arch::prologue_guard(); }

#if defined(GOFER_CHECKS)
constinit atomic<void (*)()> prologue_probe{nullptr};
#endif

}  // namespace gofer::internal

void gofer_prologue_pause() {
  using namespace gofer::internal;
#if defined(GOFER_CHECKS)
  if (auto* probe = prologue_probe.load(acquire)) probe();
#endif
  M* m = current_m();
  if (m == nullptr || m->in_runtime.load(relaxed) != 0) return;
  const int saved = errno;
  preempt_here(m, false, false);
  errno = saved;
}
