// Asking another thread where its goroutine is: see trace_request.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"

namespace gofer::internal {

struct G;
struct M;

/// A dumper's question to one M, and the answer. It lies in memory of the dumper, which must stay
/// until the request is answered or withdrawn.
struct TraceRequest {
  static constexpr size_t longest_name = 64;  // with its NUL
  static constexpr size_t most_frames = 100;

  atomic<bool> answered{false};  // last
  M* m = nullptr;                // that was asked
  const G* expected = nullptr;   // for the dumper
  const G* g = nullptr;          // what it ran then; nullptr: nothing
  uint32_t frames = 0;
  char name[longest_name] = {};  // of g; empty: it has none
  uintptr_t pcs[most_frames];
};

/// Asks m. One dumper at a time may ask it.
void ask_for_trace(M* m, TraceRequest& request);

/// Whether m cannot hear: it blocks the signal, and is not waiting for a P. A hint.
bool is_deaf(const M* m);

/// The dumper does not want the answer any more. Returns false if m is just writing it.
bool withdraw(TraceRequest& request);

/// On the thread of m, which has M::trace_request set. `signal_context` is what the signal's
/// handler got, or nullptr: then the goroutine has called this function.
void answer_trace_request(M* m, const void* signal_context);

}  // namespace gofer::internal
