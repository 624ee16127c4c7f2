// A pipeline: a stage is a function that starts a goroutine and returns the channel of its output.
#include <gofer/gofer.h>

#include <cstdio>

gofer::recv_chan<int> count_from(gofer::task_group& tasks, int first) {
  gofer::chan<int> out(0);
  tasks.go([&tasks, first, out] {
    for (int n = first; out.send(tasks.ctx(), n); ++n) {
    }
    out.close();
  });
  return out;
}

gofer::recv_chan<int> without_multiples(gofer::task_group& tasks, gofer::recv_chan<int> in, int p) {
  gofer::chan<int> out(0);
  tasks.go([&tasks, in, out, p] {
    for (int n : in) {
      if (n % p != 0 && !out.send(tasks.ctx(), n)) break;
    }
    out.close();
  });
  return out;
}

int main() {
  gofer::run([] {
    auto [ctx, cancel] = gofer::with_cancel(gofer::background());
    gofer::task_group tasks(ctx);

    gofer::recv_chan<int> numbers = count_from(tasks, 2);
    for (int i = 0; i < 10; ++i) {
      const int prime = *numbers.recv();
      std::printf("%d\n", prime);
      numbers = without_multiples(tasks, numbers, prime);
    }
    cancel();      // every stage sees it in its next send
    tasks.wait();  // and none is left behind
  });
}
