// GQueue: a FIFO of goroutines, linked by G::link. It has no lock; its owner guards it.
#pragma once

#include <cstddef>

#include "runtime/goroutines/g.h"

namespace gofer::internal {

class GQueue {
 public:
  void push_back(G* g) {
    g->link = nullptr;
    if (tail_ != nullptr) {
      tail_->link = g;
    } else {
      head_ = g;
    }
    tail_ = g;
    ++count_;
  }
  void push_front(G* g) {
    g->link = head_;
    head_ = g;
    if (tail_ == nullptr) tail_ = g;
    ++count_;
  }
  G* pop_front() {
    G* g = head_;
    if (g == nullptr) return nullptr;
    head_ = g->link;
    if (head_ == nullptr) tail_ = nullptr;
    --count_;
    return g;
  }
  /// Takes out the first goroutine for which `wanted` returns true. Returns nullptr if there is
  /// none.
  G* take_if(bool (*wanted)(G* g, void* arg), void* arg) {
    G* before = nullptr;
    for (G* g = head_; g != nullptr; before = g, g = g->link) {
      if (!wanted(g, arg)) continue;
      if (before == nullptr) return pop_front();
      before->link = g->link;
      if (tail_ == g) tail_ = before;
      --count_;
      return g;
    }
    return nullptr;
  }
  /// Moves all goroutines of `other` to the end of this queue.
  void append(GQueue& other) {
    if (other.head_ == nullptr) return;
    if (tail_ != nullptr) {
      tail_->link = other.head_;
    } else {
      head_ = other.head_;
    }
    tail_ = other.tail_;
    count_ += other.count_;
    other = GQueue{};
  }
  size_t count() const { return count_; }
  G* front() const { return head_; }

 private:
  G* head_ = nullptr;
  G* tail_ = nullptr;
  size_t count_ = 0;
};

}  // namespace gofer::internal
