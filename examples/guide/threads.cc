// Beside threads that are there already: they start goroutines, send, receive and wait as
// goroutines do. There is no run() here: the runtime starts with the first goroutine.
#include <gofer/gofer.h>

#include <cstdio>
#include <stop_token>
#include <string>
#include <thread>

// An old thread of the program, which may block.
void read_sensor(const gofer::send_chan<int>& values) {
  for (int i = 1; i <= 100; ++i) values.send(i);
  values.close();
}

int main() {
  gofer::chan<int> values(8);
  std::thread sensor(read_sensor, values);
  gofer::future<int> sum = gofer::async([values] {
    int total = 0;
    for (int v : values) total += v;
    return total;
  });
  std::printf("sum %d\n", sum.get());  // blocks this thread, no goroutine
  sensor.join();

  // A callback in a thread of some library must not block: try_send is false if there is no room.
  gofer::chan<std::string> alarms(1);
  std::thread library([alarms] {
    if (!alarms.try_send("smoke")) std::puts("lost");
    if (!alarms.try_send("fire")) std::puts("an alarm is under way already");
  });
  library.join();
  std::printf("%s\n", alarms.recv()->c_str());

  // std::jthread's stop token as a context, for goroutines that the thread waits for.
  std::jthread service([](std::stop_token token) {
    const gofer::context ctx = gofer::with_stop_token(gofer::background(), token);
    gofer::task_group tasks(ctx);
    tasks.go([&tasks] { tasks.ctx().done().recv(); });
    tasks.wait();
    std::puts("stopped");
  });
}
