// Beside Asio: its handlers give results to goroutines, and start goroutines for what takes long.
// The io_context has threads of its own.
#include <gofer/gofer.h>

#include <asio.hpp>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

// An asynchronous operation as a call that waits: the handler fulfils a promise.
std::error_code wait_with_asio(asio::io_context& io, std::chrono::milliseconds d) {
  asio::steady_timer timer(io, d);
  gofer::promise<std::error_code> promise;
  gofer::future<std::error_code> done = promise.get_future();
  timer.async_wait([p = std::move(promise)](std::error_code ec) mutable { p.set_value(ec); });
  return done.get();  // parks this goroutine; the thread goes on with others
}

int main() {
  asio::io_context io;
  auto work = asio::make_work_guard(io);
  std::thread asio_thread([&io] { io.run(); });

  gofer::run([&io] {
    gofer::wait_group wg;
    for (int i = 0; i < 100; ++i) {
      wg.go([&io] {
        if (wait_with_asio(io, 5ms)) std::puts("failed");
      });
    }
    wg.wait();
    std::puts("100 waits are over");

    gofer::chan<int> answers(0);
    asio::post(io, [answers] {                        // a handler, in Asio's thread,
      gofer::go([answers] { answers.send(6 * 7); });  // must not block: a goroutine may
    });
    std::printf("the answer is %d\n", *answers.recv());
  });
  work.reset();
  asio_thread.join();
}
