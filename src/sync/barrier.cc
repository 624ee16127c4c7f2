// A barrier is a phase number under a mutex: the last arrival ends the phase and wakes the others.
#include <gofer/latch.h>

#include <mutex>
#include <stdexcept>
#include <utility>

namespace gofer {

barrier::barrier(std::size_t participants, detail::shared_function<void()> completion)
    : expected_(participants), waiting_for_(participants), completion_(std::move(completion)) {}

barrier::~barrier() = default;

void barrier::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  const arrival_token token = arrive_locked(1);
  all_here_.wait(lock, [&] { return phase_ != token.phase_; });
}

bool barrier::arrive_and_wait(const context& ctx) {
  if (!mutex_.lock(ctx)) return false;
  std::unique_lock lock(mutex_, std::adopt_lock);
  const arrival_token token = arrive_locked(1);
  if (all_here_.wait(ctx, lock, [&] { return phase_ != token.phase_; })) return true;
  ++waiting_for_;
  return false;
}

barrier::arrival_token barrier::arrive(std::size_t n) {
  std::lock_guard lock(mutex_);
  return arrive_locked(n);
}

void barrier::wait(arrival_token token) {
  std::unique_lock lock(mutex_);
  all_here_.wait(lock, [&] { return phase_ != token.phase_; });
}

bool barrier::wait(const context& ctx, arrival_token token) {
  if (!mutex_.lock(ctx)) return false;
  std::unique_lock lock(mutex_, std::adopt_lock);
  return all_here_.wait(ctx, lock, [&] { return phase_ != token.phase_; });
}

void barrier::arrive_and_drop() {
  std::lock_guard lock(mutex_);
  check_room(1);
  --expected_;
  if (--waiting_for_ == 0) next_phase();
}

barrier::arrival_token barrier::arrive_locked(std::size_t n) {
  check_room(n);
  const arrival_token token(phase_);
  waiting_for_ -= n;
  if (waiting_for_ == 0) next_phase();
  return token;
}

void barrier::check_room(std::size_t n) const {
  if (n > waiting_for_) throw std::logic_error("gofer::barrier: more arrivals than participants");
}

void barrier::next_phase() {
  // The guard runs even if the completion ends by an exception or by goexit().
  struct guard {
    barrier& b;
    ~guard() {
      b.waiting_for_ = b.expected_;
      ++b.phase_;
      b.all_here_.broadcast();
    }
  } g{*this};
  if (completion_) completion_();
}

}  // namespace gofer
