// Testing code with goroutines, inside of any test framework: hold the other ends of its channels,
// give every wait a generous limit, and look for goroutines that were left behind.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

// What is tested: collects values into batches.
gofer::recv_chan<std::vector<int>> in_batches(gofer::recv_chan<int> in, std::size_t size) {
  gofer::chan<std::vector<int>> out(0);
  gofer::go([=] {
    std::vector<int> batch;
    for (int v : in) {
      batch.push_back(v);
      if (batch.size() == size) out.send(std::exchange(batch, {}));
    }
    if (!batch.empty()) out.send(std::move(batch));
    out.close();
  });
  return out;
}

void check(bool good, const char* what) {
  if (good) return;
  std::printf("failed: %s\n", what);
  std::exit(1);
}

// A goroutine is counted until it is quite gone, a little longer than others can tell.
bool returns_to(std::size_t goroutines) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (gofer::num_goroutine() > goroutines) {
    if (std::chrono::steady_clock::now() > limit) return false;
    gofer::sleep_for(1ms);
  }
  return true;
}

int main() {
  gofer::run([] {
    const std::size_t before = gofer::num_goroutine();
    gofer::chan<int> in(0);
    const auto batches = in_batches(in, 2);
    in.send(1);
    in.send(2);
    check(batches.recv_for(60s) == std::vector{1, 2}, "a full batch");
    in.send(3);
    in.close();
    check(batches.recv_for(60s) == std::vector{3}, "the rest when the input ends");
    check(!batches.recv_for(60s) && batches.closed(), "closed at the end");
    check(returns_to(before), "no goroutine is left");
    std::puts("ok");
  });
}
