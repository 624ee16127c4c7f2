// All numbers below n in an order that looks random and visits each once: a random start and a
// stride that has no divisor in common with n. Thieves that start at the same time then meet
// different victims.
#pragma once

#include <cstdint>
#include <numeric>

namespace gofer::internal {

class StealOrder {
 public:
  StealOrder(uint32_t n, uint32_t random) : n_(n), position_(random % n) {
    // The (random)th stride that is coprime to n; 1 always is.
    stride_ = (random / n) % n + 1;
    while (std::gcd(stride_, n) != 1) stride_ = stride_ % n + 1;
  }
  bool done() const { return visited_ == n_; }
  void next() {
    ++visited_;
    position_ = (position_ + stride_) % n_;
  }
  uint32_t position() const { return position_; }

 private:
  uint32_t n_;
  uint32_t stride_;
  uint32_t position_;
  uint32_t visited_ = 0;
};

}  // namespace gofer::internal
