// A worker pool: four goroutines take jobs from one channel, and the main one collects the results.
#include <gofer/gofer.h>

#include <cstdio>

struct result {
  long number;
  int steps;
};

int collatz_steps(long n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

int main() {
  gofer::run([] {
    gofer::chan<long> jobs(16);
    gofer::chan<result> results(16);

    gofer::wait_group workers;
    for (int i = 0; i < 4; ++i) {
      workers.go([jobs, results] {
        for (long n : jobs) results.send({n, collatz_steps(n)});  // until jobs is closed and empty
      });
    }
    gofer::go([jobs] {
      for (long n = 1; n <= 1000; ++n) jobs.send(n);
      jobs.close();
    });
    gofer::go([&workers, results] {
      workers.wait();
      results.close();
    });

    result longest{};
    for (result r : results) {
      if (r.steps > longest.steps) longest = r;
    }
    std::printf("of 1000 numbers, %ld takes most steps: %d\n", longest.number, longest.steps);
  });
}
