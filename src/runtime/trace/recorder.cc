#include "runtime/trace/recorder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "os/memory.h"
#include "runtime/process/process_state.h"
#include "runtime/trace/back_date.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/clock.h"

namespace gofer::internal::tracer {
namespace {

// Dropping a generation should not drop much of what is to be kept.
constexpr int parts = 4;
constexpr int64_t shortest_ns = 1'000'000;
constexpr int64_t longest_ns = 1'000'000'000;
constexpr uint64_t least_bytes = 256u << 10;
constexpr uint64_t most_bytes = 16u << 20;

Kept* new_kept(size_t size) {
  const size_t mapped = (sizeof(Kept) + size + os::page_size - 1) & ~(os::page_size - 1);
  void* memory = os::reserve(mapped);
  if (memory == nullptr) return nullptr;
  auto* kept = static_cast<Kept*>(memory);
  kept->mapped = mapped;
  kept->size = size;
  return kept;
}

// write_tables calls a plain function.
Output* table_output = nullptr;
int table_error = 0;
void write_table_bytes(const void* bytes, size_t size) {
  if (table_error == 0) table_error = table_output->write(bytes, size);
}

int write_tables_to(Output& output, const Kept& kept) {
  table_output = &output;
  table_error = 0;
  write_tables(kept.used, kept.generation, kept.end_ns, write_table_bytes);
  return table_error;
}

}  // namespace

int64_t Recorder::generation_ns() const {
  return std::clamp(limits_.keep_ns / parts, shortest_ns, longest_ns);
}

uint64_t Recorder::generation_bytes() const {
  return std::clamp(uint64_t{limits_.bytes} / parts, least_bytes, most_bytes);
}

int Recorder::keep(uint64_t generation) {
  Buffer* full = take_full(generation);
  size_t size = 0;
  for (Buffer* b = full; b != nullptr; b = b->next) size += batch_size(b);
  Kept* kept = new_kept(size);
  if (kept != nullptr) {
    kept->next = nullptr;
    kept->generation = generation;
    kept->begin_ns = kept->end_ns = now();
    note_used(generation, kept->used);
  }
  size_t at = 0;
  while (full != nullptr) {
    Buffer* b = full;
    full = b->next;
    if (kept != nullptr) {
      std::memcpy(reinterpret_cast<char*>(kept + 1) + at, batch_of(b), batch_size(b));
      at += batch_size(b);
      kept->begin_ns = std::min(kept->begin_ns, b->first_time);
    }
    give_back(b);
  }
  if (kept == nullptr) return ENOMEM;
  (last_ != nullptr ? last_->next : first_) = kept;
  last_ = kept;
  bytes_ += kept->mapped;
  drop_old();
  return 0;
}

int Recorder::write(Output& output) const {
  if (first_ == nullptr) return 0;
  try {
    const BackDated added(first_);
    if (const int error = added.write(output); error != 0) return error;
    for (const Kept* kept = first_; kept != nullptr; kept = kept->next) {
      if (const int error = added.write_batches(output, *kept); error != 0) return error;
      if (const int error = write_tables_to(output, *kept); error != 0) return error;
    }
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

uint64_t Recorder::duration_ns() const {
  return first_ != nullptr ? last_->end_ns - first_->begin_ns : 0;
}

void Recorder::drop_first() {
  Kept* dropped = first_;
  first_ = dropped->next;
  if (first_ == nullptr) last_ = nullptr;
  bytes_ -= dropped->mapped;
  os::release(dropped, dropped->mapped);
}

// What is left covers the time, if it may take so much memory. The last one always stays. While a
// report is made, which may take seconds, time does not count: what led to it is to be written.
void Recorder::drop_old() {
  const bool reporting = process.exiting.load(relaxed);
  const uint64_t keep_ns = reporting ? UINT64_MAX : static_cast<uint64_t>(limits_.keep_ns);
  while (first_ != last_ &&
         (bytes_ > limits_.bytes || last_->end_ns - first_->next->begin_ns >= keep_ns)) {
    drop_first();
  }
}

void Recorder::clear() {
  while (first_ != nullptr) drop_first();
}

}  // namespace gofer::internal::tracer
