#include "runtime/trace/clock.h"

#include "os/clock.h"

namespace gofer::internal::tracer {

constinit Clock clock;

namespace {

struct Reading {
  uint64_t ticks;
  uint64_t ns;
};

// Both clocks at one moment: of some attempts the one during which the least time has passed.
Reading read_both() {
  constexpr int attempts = 16;
  Reading best{};
  uint64_t least = ~uint64_t{0};
  for (int i = 0; i < attempts; ++i) {
    const uint64_t before = arch::ticks();
    const auto ns = static_cast<uint64_t>(os::now_ns());
    const uint64_t after = arch::ticks();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + least / 2, ns};
  }
  return best;
}

}  // namespace

void set_clock() {
  constexpr int64_t distance_ns = 10'000'000;
  static Reading first{};
  if (!arch::has_steady_ticks() || !os::kernel_trusts_ticks()) return;
  if (first.ns == 0) {
    first = read_both();
    os::sleep_ns(distance_ns);
  }
  const Reading second = read_both();
  if (second.ticks <= first.ticks || second.ns <= first.ns) return;
  const auto ns = static_cast<unsigned __int128>(second.ns - first.ns) << 32;
  clock = {second.ticks, second.ns, static_cast<uint64_t>(ns / (second.ticks - first.ticks))};
}

}  // namespace gofer::internal::tracer
