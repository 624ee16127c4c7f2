// A pipeline with a time limit: a source, three workers, one collector. All of them stop in
// order.
//
// Shows channels, range-for over one, select, a task_group with its context, and a timer.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

// Sends numbers until the context is done.
void source(const gofer::context& ctx, gofer::send_chan<int> out) {
  for (int n = 1; out.send(ctx, n); ++n) {
  }
  out.close();
}

int digits(int n) {
  int sum = 0;
  for (; n > 0; n /= 10) sum += n % 10;
  return sum;
}

void worker(const gofer::context& ctx, gofer::recv_chan<int> in, gofer::send_chan<int> out) {
  for (int n : in) {
    if (!out.send(ctx, digits(n))) return;
  }
}

}  // namespace

int main() {
  return gofer::run([] {
    auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 5s);
    gofer::task_group tasks(ctx);
    gofer::chan<int> numbers(16);
    gofer::chan<int> sums(0);
    tasks.go([&, numbers] { source(tasks.ctx(), numbers); });
    for (int i = 0; i < 3; ++i)
      tasks.go([&, numbers, sums] { worker(tasks.ctx(), numbers, sums); });

    gofer::ticker progress(10ms);
    const auto ticks = progress.c();
    long total = 0;
    int seen = 0;
    while (seen < 20'000 && !ctx.err()) {
      gofer::select(gofer::on_recv(sums,
                                   [&](int sum) {
                                     total += sum;
                                     ++seen;
                                   }),
                    gofer::on_recv(ticks, [&] { std::printf("%d so far\n", seen); }),
                    gofer::on_recv(ctx.done(), [] { std::printf("too slow\n"); }));
    }
    cancel();      // the source and the workers see it in their next send
    tasks.wait();  // no goroutine is left behind
    std::printf("%d numbers, digits add up to about %ld\n", seen, total);
    return seen == 20'000 ? 0 : 1;
  });
}
