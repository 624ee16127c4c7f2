// Which M this thread is, and the gate to the runtime.
//
// A goroutine may go on in another thread after a switch, and compilers keep the address of a
// thread_local over calls. So the pointer is read by an asm statement that they can neither move
// nor merge (arch.h); nothing else in the library keeps thread-local state across a switch.
#pragma once

#include "arch/arch.h"
#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"

extern "C" {
extern thread_local constinit gofer::internal::M* gofer_current_m
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
}

namespace gofer::internal {

/// nullptr: a thread that the runtime did not make.
inline M* current_m() { return arch::current_m(); }

/// nullptr: a foreign thread, or g0.
inline G* current_g() {
  M* m = current_m();
  return m == nullptr ? nullptr : m->curg;
}

/// The gate: from here to leave() the P cannot be taken away. False: m is in doubt whether it still
/// has its P, and has to settle that first. p_word.h proves this one; nobody else writes in_runtime
/// = 1 before a look at in_doubt.
inline bool pass_gate(M* m) {
  m->in_runtime.store(1, relaxed);
  compiler_barrier();  // the processor's part of this fence is the taker's membarrier
  return m->in_doubt.load(acquire) == 0;
}
void enter_slow(M* m);
/// Test builds: the gate does not count, so to enter twice is an error; and so is to enter in a
/// signal handler, which may have interrupted the runtime.
void check_entry(const M* m);

/// Outside of the runtime: a look at the word, which may be wrong a moment later.
inline bool seems_to_hold_p(const M* m) { return m->p->word.load(acquire) == m->p_word; }

/// Inside of the runtime: always.
inline bool holds_p(const M* m) {
  return PWord(m->p->word.load(relaxed)).with(PWordState::running).bits() == m->p_word;
}

/// Every call that touches a P begins so. From here to leave() the P cannot be taken away. In a
/// thread that is no M: nullptr, and nothing happens.
inline M* enter() {
  M* m = current_m();
  if (m == nullptr) return nullptr;
  if constexpr (checks_enabled) check_entry(m);
  if (!pass_gate(m)) [[unlikely]]
    enter_slow(m);
  GOFER_ASSERT(holds_p(m));
  return m;
}

/// The M must be fetched anew if a switch may have happened since enter().
inline void leave(M* m) { m->in_runtime.store(0, release); }

/// enter() to leave() as a scope, for calls that may switch in between.
class Inside {
 public:
  Inside() : m_(enter()) {}
  ~Inside() {
    if (m_ != nullptr) leave(current_m());
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  /// The M that entered: right until the first switch. nullptr in a foreign thread.
  M* m() const { return m_; }

 private:
  M* m_;
};

}  // namespace gofer::internal
