// The local run queue of a P: a ring of goroutines and the slot `runnext`.
//
// One owner (the M that holds the P) puts at the tail and gets at the head; any number of thieves
// take half from the head. No side locks.
//
// Invariants
//  - tail - head (mod 2^32) is the number of goroutines in the ring, 0..N.
//  - Only the owner writes tail_ and the slots in [tail, head + N).
//  - A slot in [head, tail) is not written until head_ has moved past it.
//  - A goroutine is given to exactly the party whose compare-and-swap of head_ covered its slot.
//
// Memory order
//  - put: the slot is written before tail_ is stored with release. A thief loads tail_ with
//    acquire, so it sees the slots it is about to read, and the goroutine's contents behind them.
//  - get and grab: slots are read before head_ is advanced by compare-and-swap with release. The
//    owner loads head_ with acquire before it writes a slot again, so it cannot overwrite a slot
//    that a successful reader has yet to read. A reader whose compare-and-swap fails throws what
//    it read away.
//  - A thief reads head_ and tail_ at different times and may see more than N/2 of difference
//    torn: n > N/2 means an inconsistent pair, look again.
//  - runnext: every change is a read-modify-write with seq_cst, because a goroutine made ready
//    there must be visible to a thief that looks again before it sleeps (see wake_p()).
//
// With one P there are no thieves (`alone`): the owner then needs no read-modify-write, which is a
// third of the cost of a yield. An M without a P may look and find nothing where there is
// something; but then the putter holds the only P.
//
// Rejected: Chase-Lev (owner works LIFO: starves the oldest, and yield would need a second queue);
// a lock per P (a thief that is descheduled while it holds it stops the owner).
#pragma once

#include "runtime/base/atomic.h"

namespace gofer::internal {

template <class T, uint32_t N = 256>
class RunQueue {
  static_assert((N & (N - 1)) == 0, "the ring's size must be a power of two");

 public:
  static constexpr uint32_t capacity = N;

  /// Owner. False when the ring is full.
  bool put(T* g) {
    const uint32_t h = head_.load(acquire);
    const uint32_t t = tail_.load(relaxed);
    if (t - h >= N) return false;
    slot_[t % N].store(g, relaxed);
    tail_.store(t + 1, release);
    return true;
  }

  /// Owner. The oldest goroutine of the ring, or nullptr.
  T* get() {
    uint32_t h = head_.load(acquire);
    const uint32_t t = tail_.load(relaxed);
    while (t != h) {
      T* g = slot_[h % N].load(relaxed);
      if (alone_) {
        head_.store(h + 1, relaxed);
        return g;
      }
      if (head_.compare_exchange_strong(h, h + 1, acq_rel, acquire)) return g;
    }
    return nullptr;
  }

  /// Owner. Takes the older half of a full ring into `out`; 0 when thieves made room meanwhile.
  uint32_t take_half_of_full(T* (&out)[N / 2 + 1]) {
    uint32_t h = head_.load(acquire);
    const uint32_t t = tail_.load(relaxed);
    const uint32_t n = (t - h) / 2;
    if (n != N / 2) return 0;
    for (uint32_t i = 0; i < n; ++i) out[i] = slot_[(h + i) % N].load(relaxed);
    return head_.compare_exchange_strong(h, h + n, acq_rel, acquire) ? n : 0;
  }

  /// Owner of this queue, which must be empty: moves half of the victim's goroutines here and
  /// returns the last of them to be run at once; nullptr when there was nothing. `moved` counts
  /// them all. With `take_next`, an empty ring gives its runnext.
  T* steal_from(RunQueue& victim, bool take_next, uint32_t& moved) {
    const uint32_t t = tail_.load(relaxed);
    uint32_t n = victim.grab(*this, t);
    if (n == 0) {
      T* next = take_next ? victim.take_next() : nullptr;
      moved = next != nullptr ? 1 : 0;
      return next;
    }
    moved = n;
    --n;
    T* g = slot_[(t + n) % N].load(relaxed);
    if (n != 0) tail_.store(t + n, release);
    return g;
  }

  /// Owner. Makes g the next to run; returns the one that was.
  T* exchange_next(T* g) {
    if (!alone_) return next_.exchange(g, seq_cst);
    T* old = next_.load(relaxed);
    next_.store(g, relaxed);
    return old;
  }

  /// Anyone. The goroutine in runnext, which is empty afterwards.
  T* take_next() {
    T* g = next_.load(relaxed);
    if (g == nullptr) return nullptr;
    if (!alone_) return next_.exchange(nullptr, seq_cst);
    next_.store(nullptr, relaxed);
    return g;
  }

  /// While no thread uses the queue: there are no thieves from now on, or there may be.
  void set_alone(bool alone) { alone_ = alone; }

  bool has_next() const { return next_.load(seq_cst) != nullptr; }

  /// Goroutines in the ring; a snapshot.
  uint32_t size() const {
    for (;;) {
      const uint32_t h = head_.load(acquire);
      const uint32_t t = tail_.load(acquire);
      if (h == head_.load(acquire)) return t - h;
    }
  }

  /// Neither a goroutine in the ring nor one in runnext at one instant. The owner may move one
  /// from runnext to the ring between two of our loads; an unchanged tail says that it did not.
  bool empty() const {
    for (;;) {
      const uint32_t h = head_.load(seq_cst);
      const uint32_t t = tail_.load(seq_cst);
      const bool next = has_next();
      if (t == tail_.load(seq_cst)) return h == t && !next;
    }
  }

 private:
  // Thief: copies half of this queue into `to`'s slots from position t on, then claims them.
  uint32_t grab(RunQueue& to, uint32_t t) {
    for (;;) {
      uint32_t h = head_.load(acquire);
      const uint32_t mine = tail_.load(acquire);
      uint32_t n = mine - h;
      n -= n / 2;
      if (n == 0) return 0;
      if (n > N / 2) continue;
      for (uint32_t i = 0; i < n; ++i) {
        to.slot_[(t + i) % N].store(slot_[(h + i) % N].load(relaxed), relaxed);
      }
      if (head_.compare_exchange_strong(h, h + n, acq_rel, acquire)) return n;
    }
  }

  atomic<uint32_t> head_{0};
  atomic<uint32_t> tail_{0};
  atomic<T*> next_{nullptr};
  bool alone_ = false;
  atomic<T*> slot_[N]{};
};

}  // namespace gofer::internal
