// The buffers of a trace: empty ones for those that write events, full ones for the tracer's
// thread.
//
// Memory. A buffer is mapped when a stream needs one and none is free. What limits a trace is the
// memory of full buffers that wait to be written, and not the number of buffers: each M keeps one
// or two that are nearly empty, and thousands of Ms may be in calls. Of those, only the pages that
// were written take memory. Free buffers are kept for the next event up to a number, and none of
// them outlives the trace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/trace/stream.h"

namespace gofer::internal::tracer {

/// Full buffers of one generation, in the order in which they became full.
struct BufferList {
  Buffer* first = nullptr;
  Buffer* last = nullptr;
};

struct Buffers {
  Lock lock{LockRank::trace_lists};
  BufferList full[2] GOFER_GUARDED_BY(lock);  // by generation, modulo 2
  Buffer* free GOFER_GUARDED_BY(lock) = nullptr;
  size_t free_count GOFER_GUARDED_BY(lock) = 0;

  atomic<uint64_t> bytes{0};    // in full buffers of the generation
  atomic<uint64_t> waiting{0};  // memory of full buffers that were not given back, about
  atomic<int64_t> mapped{0};    // buffers that there are
};
extern constinit Buffers buffers;

/// Memory that full buffers may take while they wait to be written.
inline constexpr uint64_t most_waiting = 256u << 20;

/// An empty buffer for events of m, in place of `full`, which may be nullptr. Returns nullptr if
/// none is to be had, and the trace ends.
Buffer* next_buffer(uint64_t m, Buffer* full, uint64_t generation, uint64_t time);
/// The buffer is complete: the tracer's thread writes it out.
void retire(Buffer* b);

// For the tracer's thread.

/// The complete buffers of a generation, linked, which are the caller's from now on.
Buffer* take_full(uint64_t generation);
/// The bytes of the batch: its head and its data.
inline uint8_t* batch_of(Buffer* b) { return b->data() - b->head; }
inline size_t batch_size(const Buffer* b) { return b->head + b->used; }
/// What was taken is done with.
void give_back(Buffer* b);
void drop_full(uint64_t generation);
/// No stream has a buffer any more, and none is full: their memory goes back to the kernel.
void release_free_buffers();

}  // namespace gofer::internal::tracer
