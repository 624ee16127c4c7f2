// A flight recorder: the program keeps the last seconds of its execution trace in memory, and when
// a request takes too long it writes what led to that.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto limit = 20ms;

// One of them holds a lock for too long.
void serve(gofer::mutex& m, int number) {
  const gofer::trace::region region("serve");
  m.lock();
  if (number == 70) gofer::sleep_for(2 * limit);
  m.unlock();
}

}  // namespace

int main() {
  const char* path = "slow.trace";
  std::remove(path);
  gofer::trace::flight_recorder recorder({.keep = 5s, .report_path = "report-%p.trace"});
  recorder.start();
  gofer::run([&] {
    gofer::mutex m;
    gofer::once written;
    gofer::wait_group requests;
    for (int i = 0; i < 100; ++i) {
      requests.go([&, i] {
        const auto begin = Clock::now();
        serve(m, i);
        if (Clock::now() - begin > limit) written.call([&] { recorder.write(path); });
      });
      gofer::sleep_for(1ms);
    }
    requests.wait();
  });
  std::printf("gofer trace summary %s\ngo tool trace %s\n", path, path);
}
