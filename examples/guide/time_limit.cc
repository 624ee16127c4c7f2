// A time limit: a context with a deadline goes down with the calls, and ends the one that waits.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>

using namespace std::chrono_literals;

std::string answer_of(const gofer::context& ctx, std::string server) {
  const auto takes = server == "near" ? 1ms : std::chrono::milliseconds(1h);
  if (!gofer::sleep_for(ctx, takes)) ctx.throw_if_done();  // stands for a read from the network
  return "hello from " + server;
}

void ask(std::string server, std::chrono::milliseconds limit) {
  auto [ctx, cancel] = gofer::with_timeout(gofer::background(), limit);
  gofer::cancel_guard at_end(cancel);
  try {
    std::printf("%s\n", answer_of(ctx, server).c_str());
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::timed_out) throw;
    std::printf("%s is too slow\n", server.c_str());
  }
}

int main() {
  gofer::run([] {
    ask("near", 60s);
    ask("far", 20ms);

    gofer::chan<int> silent(0);  // for a single wait, no context is needed
    gofer::select(gofer::on_recv(silent, [](int) { std::puts("a value"); }),
                  gofer::on_timeout(20ms, [] { std::puts("no value"); }));
    if (!silent.recv_for(20ms)) std::puts("still none");
  });
}
