#include "runtime/metrics/sampler.h"

#include "os/clock.h"
#include "runtime/base/assert.h"
#include "runtime/procs/p.h"
#include "runtime/threads/m.h"

namespace gofer::internal {
namespace {

constexpr uint32_t longest_distance = 1024;
constexpr int64_t dense_ns = 500'000;     // samples that come faster are taken more rarely
constexpr int64_t sparse_ns = 2'000'000;  // samples that come slower are taken more often
constexpr int64_t long_ago_ns = 100'000'000;

struct alignas(32) Slot {
  atomic<G*> g{nullptr};  // nullptr: free
  atomic<int64_t> since_ns{0};
  atomic<uint32_t> weight{0};
};

constexpr uint32_t slot_bits = 10;
constexpr uint32_t slot_count = 1u << slot_bits;
constexpr uint32_t slots_tried = 4;
constinit Slot slots[slot_count];

// Of all threads without a P; under the scheduler's lock.
constinit Sampling thread_sampling;
constinit int32_t thread_until_sample = 0;

Slot& slot_near(const G* g, uint32_t i) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(g));
  const uint64_t hash = (address / sizeof(G)) * 0x9e3779b97f4a7c15u;
  return slots[(static_cast<uint32_t>(hash >> (64 - slot_bits)) + i) % slot_count];
}

Slot* claim_slot(G* g) {
  for (uint32_t i = 0; i < slots_tried; ++i) {
    Slot& slot = slot_near(g, i);
    if (slot.g.load(relaxed) != nullptr) continue;
    G* free = nullptr;
    if (slot.g.compare_exchange_strong(free, g, acquire, relaxed)) return &slot;
  }
  return nullptr;
}

Slot* find_slot(const G* g) {
  for (uint32_t i = 0; i < slots_tried; ++i) {
    Slot& slot = slot_near(g, i);
    if (slot.g.load(relaxed) == g) return &slot;
  }
  return nullptr;
}

void stamp(G* g, int64_t now, uint32_t weight) {
  Slot* slot = claim_slot(g);
  if (slot == nullptr) return;
  slot->since_ns.store(now, relaxed);
  slot->weight.store(weight, relaxed);
  g->marks.fetch_or(sample_mark, relaxed);
}

// How many are to be counted until the next sample.
uint32_t next_distance(Sampling& s, int64_t now) {
  const int64_t passed = now - s.last_ns;
  s.last_ns = now;
  if (passed < dense_ns && s.distance < longest_distance) {
    s.distance *= 2;
  } else if (passed > sparse_ns && s.distance > 1) {
    s.distance /= 2;
  }
  if (s.distance == 1) return 1;
  const auto noise = static_cast<uint32_t>(static_cast<uint64_t>(now) * 0x9e3779b97f4a7c15u >> 40);
  return s.distance / 2 + noise % s.distance;
}

void take_sample(Sampling& s, int32_t& until_sample, G* g) {
  const int64_t now = os::now_ns();
  stamp(g, now, s.counted);
  s.counted = next_distance(s, now);
  until_sample = static_cast<int32_t>(s.counted) - 1;
}

}  // namespace

M* sample(M* m, G* g) {
  take_sample(m->sampling, m->until_sample, g);
  return m;
}

void sample_soon(M* m) {
  if (m->until_sample <= 0 || os::now_ns() - m->sampling.last_ns < long_ago_ns) return;
  m->sampling.counted = 1;  // it is no sample of those before the sleep
  m->sampling.distance = 1;
  m->until_sample = 0;
}

void count_for_thread(G* g) {
  if (--thread_until_sample < 0) take_sample(thread_sampling, thread_until_sample, g);
}

void sampled_runs(M* m, G* g) {
  Slot* slot = find_slot(g);
  GOFER_ASSERT(slot != nullptr);
  const int64_t since = slot->since_ns.load(relaxed);
  const uint32_t weight = slot->weight.load(relaxed);
  slot->g.store(nullptr, release);
  g->marks.fetch_and(static_cast<uint8_t>(~sample_mark), relaxed);
  P* p = m->p;
  if (p == nullptr) return;  // it goes on without one
  const int64_t now = os::now_ns();
  p->latencies.record(now - since, weight);
  m->slice = {.p = p, .begin_ns = now, .hold = m->p_word, .weight = weight};
  if (!m->paused.load(relaxed)) {
    m->slice.budget = p->budget - 1;
  } else if (p->budget > 0) {
    m->budget = p->budget;  // as at any pause: preempt.cc
  }
  p->budget = 0;
}

void sampled_slice_ends(M* m) {
  const SampledSlice slice = m->slice;
  m->slice.begin_ns = 0;
  P* p = m->p;
  if (p == nullptr || p != slice.p || m->p_word != slice.hold) return;
  p->slices.record(os::now_ns() - slice.begin_ns, slice.weight);
  if (slice.budget != SampledSlice::keep) p->budget = slice.budget;
}

}  // namespace gofer::internal
