// Streams: which thread writes events where, and how others get at what was written.
//
// Each M has a stream, which it writes with plain stores, and so has the rest of the world: threads
// that are no Ms share one under a lock. A stream has a buffer that is being filled, for events,
// and one for Gofer's records. It also has what the trace has said of its M so far: the P that the
// M holds, the goroutine on it, and whether that is in a call. The rules of the format
// (docs/TRACING.md) are about this state, so the functions that write events (writer.h) go by it
// and not by the M's own fields. The two may differ for a moment, while a P is taken.
//
// Now and then another thread needs an M's stream: one that has taken its P or gives it back, to
// say so in the M's name; and the tracer's thread, at the end of a generation, to fetch the
// buffers. Such a thread is a visitor. It must not be a burden to the M, so the lock of a stream is
// one-sided, like the P word (p_word.h):
//
//   the M:     writing = 1 (plain store); load wanted. 1: writing = 0, wait until wanted is 0, and
//              begin again. Otherwise it writes; then writing = 0 (release).
//   visitor:   wanted = 1; membarrier; wait until writing is 0 (acquire). It reads and writes; then
//              wanted = 0 (release).
//
// Why it is right. The membarrier makes the M's store and load behave as if a full fence stood
// between them. Either the store came before it: then the visitor sees writing == 1 and waits for
// the release that follows, so it sees all that the M wrote. Or the load comes after it, and the M
// sees wanted == 1 and waits; the acquire of its next load of wanted, which reads 0, makes it see
// all that the visitor wrote. Visitors take turns by a lock, so `wanted` has one master at a time.
// Without membarrier the M's store is an exchange. tests/model/stream.pml checks all of this, and
// that it fails without each of its parts.
//
// Nobody waits for long: a thread is inside of the runtime while it writes (in_runtime is set), so
// no signal pauses it, and it waits for nothing but the lists of buffers, which are held for some
// instructions. A visitor does not wait for locks of the scheduler while it visits.
//
// Generations. tracer::session.generation says to which generation an event belongs that is written
// now; a writer reads it when the stream is its own. For each goroutine, P and M the generations of
// its events never decrease, without any thread being stopped: whatever orders two transitions of a
// goroutine or a P (a lock, the P word, a queue) also orders the two loads of the generation, and
// loads of one variable that are ordered so never go back. That is all the format needs, since each
// generation begins with the state that the events of the ones before it lead to. When the tracer's
// thread has visited all streams after a change of the generation, no event of the old one can be
// written any more: a thread that writes later has seen the end of the visit, and so the change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"

namespace gofer::internal {

struct G;
struct P;
struct M;

namespace tracer {

/// A batch that is being filled. The head is written when it is full, in front of the data.
struct Buffer {
  static constexpr size_t size = 64 * 1024;
  static constexpr size_t head_room = 48;

  Buffer* next;
  uint64_t generation;
  uint64_t first_time;  // of the batch
  uint64_t last_time;   // of the last event
  uint64_t m;
  uint32_t used;  // bytes of data
  uint32_t head;  // bytes of the head, which ends where the data begins
  bool records;   // Gofer's own, not events
  uint8_t bytes[size - 56];

  uint8_t* data() { return bytes + head_room; }
  static constexpr size_t capacity = sizeof bytes - head_room;
};
static_assert(sizeof(Buffer) == Buffer::size);

struct Stream {
  atomic<uint32_t> writing{0};
  atomic<uint32_t> wanted{0};
  uint32_t m = 0;  // its number in the trace
  Buffer* events = nullptr;
  Buffer* records = nullptr;

  // What the trace has said of the M.
  P* p = nullptr;
  G* g = nullptr;
  bool in_call = false;  // g is in a system call, and so is p if there is one
  bool stopped_world = false;
  uint64_t stated_in = 0;  // the last generation that has the state of p and g

  Stream* next = nullptr;  // in the list of all
};

/// Whether the one-sided lock works by membarrier. Set between traces.
extern constinit atomic<bool> one_sided;

void wait_for_visitor(Stream& s);

/// By the M of the stream, inside.
inline void begin_writing(Stream& s) {
  for (;;) {
    if (one_sided.load(relaxed)) [[likely]] {
      s.writing.store(1, relaxed);
      compiler_barrier();  // the processor's part of this fence is the visitor's membarrier
    } else {
      s.writing.exchange(1, seq_cst);
    }
    if (s.wanted.load(seq_cst) == 0) [[likely]]
      return;
    wait_for_visitor(s);
  }
}
inline void end_writing(Stream& s) { s.writing.store(0, release); }

/// By any other thread.
void begin_visit(Stream& s);
void end_visit(Stream& s);
/// All streams at once; f is called for each while it is visited.
void visit_all(void (*f)(Stream& s, void* arg), void* arg);

/// The stream of m, by any thread; nullptr without memory.
Stream* stream_of(M* m);
/// The stream of the threads that are no Ms, and its lock.
extern constinit Stream foreign;
extern constinit Lock foreign_lock;

}  // namespace tracer
}  // namespace gofer::internal
