#include "runtime/watch/prologue.h"

#include <cerrno>

#include "runtime/procs/current.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {

// Not inline: who asks for it links what the hook calls.
uintptr_t* prologue_guard() {
#if defined(__x86_64__)
  uintptr_t block;
  asm("movq %%fs:0, %0" : "=r"(block));
  return reinterpret_cast<uintptr_t*>(block + 0x70);  // NOLINT(performance-no-int-to-ptr)
#else
#error "prologue_guard: unknown architecture"
#endif
}

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
  preempt_here(m, false);
  errno = saved;
}
