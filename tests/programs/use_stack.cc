// Goroutines that use their stacks down to a given depth: use_stack <bytes> <goroutines>.
// The size of the stacks comes from GOFER_STACK_SIZE.
#include <gofer/gofer.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

// Goes down until `bytes` of stack lie above, and checks on the way back what it left there.
template <int FrameSize>
// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] bool descend(std::uintptr_t top, std::size_t bytes) {
  volatile unsigned char frame[FrameSize];
  const auto here = reinterpret_cast<std::uintptr_t>(&frame[0]);
  const auto mark = static_cast<unsigned char>(here >> 8);
  frame[0] = mark;
  frame[FrameSize - 1] = mark;
  const bool below = top - here >= bytes || descend<FrameSize>(top, bytes);
  return below && frame[0] == mark && frame[FrameSize - 1] == mark;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  const int count = std::atoi(argv[2]);
  std::atomic<int> good{0};
  gofer::wait_group inside;
  inside.add(count);
  gofer::wait_group group;
  for (int i = 0; i < count; ++i) {
    group.go([&] {
      const auto top = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      inside.done();
      inside.wait();  // all have their stacks at the same time
      // TSan follows 65,536 frames at most.
      good += bytes < (1 << 20) ? descend<256>(top, bytes) : descend<4096>(top, bytes);
    });
  }
  group.wait();
  std::printf("%d of %d went down %zu bytes\n", good.load(), count, bytes);
  return good == count ? 0 : 1;
}
