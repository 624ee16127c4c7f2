// stream.h tells why no thread has to be stopped at the end of a generation. The next one mentions
// a goroutine when something happens to it.
#include "runtime/trace/generations.h"

#include "runtime/goroutines/g.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/session.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/tables.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {

static_assert(4 * generations_between_sweeps <= marks);

namespace {

// Fetches what a stream has of an old generation.
void collect(Stream& s, void* generation) {
  const uint64_t now_open = *static_cast<uint64_t*>(generation);
  for (Buffer** b : {&s.events, &s.records}) {
    if (*b == nullptr || (*b)->generation == now_open) continue;
    retire(*b);
    *b = nullptr;
  }
}

}  // namespace

void close_generation(uint64_t next) {
  session.generation.store(next, seq_cst);
  visit_all(collect, &next);
  collect_texts(next);
}

void sweep_marks(uint64_t generation) {
  struct Recent {
    uint32_t marks[2];
  } recent{{mark_of(generation), mark_of(generation + 1)}};
  for_each_g(
      [](G* g, void* arg) {
        uint32_t word = g->trace.load(relaxed);
        for (uint32_t mark : static_cast<Recent*>(arg)->marks) {
          if ((word & ~count_mask) == mark) return;
        }
        // If the goroutine is mentioned at this moment, that is what counts.
        g->trace.compare_exchange_strong(word, 0, relaxed);
      },
      &recent);
}

}  // namespace gofer::internal::tracer
