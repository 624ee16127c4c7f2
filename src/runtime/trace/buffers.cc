#include "runtime/trace/buffers.h"

#include <cerrno>
#include <cstring>

#include "os/memory.h"
#include "runtime/trace/session.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {

constinit Buffers buffers;

namespace {

constexpr size_t most_free = 256;

Buffer* take_free() {
  LockGuard guard(buffers.lock);
  Buffer* b = buffers.free;
  if (b == nullptr) return nullptr;
  buffers.free = b->next;
  --buffers.free_count;
  return b;
}

Buffer* new_buffer() {
  void* memory = os::reserve(Buffer::size);
  if (memory != nullptr) buffers.mapped.fetch_add(1, relaxed);
  return static_cast<Buffer*>(memory);
}

void release_buffer(Buffer* b) {
  os::release(b, Buffer::size);
  buffers.mapped.fetch_sub(1, relaxed);
}

// The pages that the batch has touched. A buffer that was used before may have more of them.
uint64_t memory_of(const Buffer* b) {
  const size_t used = sizeof(Buffer) - Buffer::capacity + b->used;
  return (used + os::page_size - 1) & ~(os::page_size - 1);
}

// Writes the batch's head in front of its data.
void write_head(Buffer* b) {
  uint8_t head[2 + 4 * longest_varint];
  uint8_t* at = head;
  *at++ = b->records ? experimental_batch : event_batch;
  if (b->records) *at++ = gofer_experiment;
  at = put_varint(at, b->generation);
  at = put_varint(at, b->m);
  at = put_varint(at, b->first_time);
  at = put_varint(at, b->used);
  b->head = static_cast<uint32_t>(at - head);
  std::memcpy(b->data() - b->head, head, b->head);
}

}  // namespace

// After a failure each event comes here until the tracer's thread has ended the trace. It takes no
// lock, so that those who trace do not wait for each other.
Buffer* next_buffer(uint64_t m, Buffer* full, uint64_t generation, uint64_t time) {
  if (full != nullptr) retire(full);
  if (session.failure.load(relaxed) != 0) return nullptr;
  if (buffers.waiting.load(relaxed) >= most_waiting) {
    fail(ENOBUFS);
    return nullptr;
  }
  Buffer* b = take_free();
  if (b == nullptr) b = new_buffer();
  if (b == nullptr) {
    fail(ENOMEM);
    return nullptr;
  }
  b->generation = generation;
  b->first_time = b->last_time = time;
  b->m = m;
  b->used = 0;
  b->records = false;
  return b;
}

void retire(Buffer* b) {
  write_head(b);
  b->next = nullptr;
  buffers.waiting.fetch_add(memory_of(b), relaxed);
  buffers.bytes.fetch_add(b->used, relaxed);
  {
    LockGuard guard(buffers.lock);
    BufferList& list = buffers.full[b->generation & 1];
    if (list.last != nullptr) {
      list.last->next = b;
    } else {
      list.first = b;
    }
    list.last = b;
  }
  session.work.signal();
}

Buffer* take_full(uint64_t generation) {
  LockGuard guard(buffers.lock);
  BufferList& list = buffers.full[generation & 1];
  Buffer* first = list.first;
  list = BufferList{};
  return first;
}

void give_back(Buffer* b) {
  buffers.waiting.fetch_sub(memory_of(b), relaxed);
  {
    LockGuard guard(buffers.lock);
    if (buffers.free_count < most_free) {
      b->next = buffers.free;
      buffers.free = b;
      ++buffers.free_count;
      return;
    }
  }
  release_buffer(b);
}

void drop_full(uint64_t generation) {
  for (Buffer* b = take_full(generation); b != nullptr;) {
    Buffer* next = b->next;
    give_back(b);
    b = next;
  }
}

void release_free_buffers() {
  while (Buffer* b = take_free()) release_buffer(b);
}

}  // namespace gofer::internal::tracer
