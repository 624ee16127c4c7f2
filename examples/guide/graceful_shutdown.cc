// A server that ends well: at SIGTERM or Ctrl-C it accepts nothing more, and answers the requests
// that it has begun. The program is its own client, so that it ends by itself.
#include <gofer/gofer.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

void client(const std::string& server, const gofer::chan<bool>& begun) {
  const gofer::net::conn idle = gofer::net::dial(server);  // sends nothing: ended by the shutdown
  const gofer::net::conn c = gofer::net::dial(server);
  c.write_all("hello");
  begun.recv();         // the server has the request, and has not answered
  std::raise(SIGTERM);  // what `kill` or an init system sends
  char answer[5];
  c.read_full(answer);
  std::printf("answer: %.*s\n", 5, answer);
}

int main() {
  gofer::run([] {
    auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    gofer::after_func(ctx, stop);  // a second Ctrl-C ends the process as usual

    const gofer::net::listener listener = gofer::net::listen("127.0.0.1:0");
    gofer::chan<bool> begun(1);
    auto done = gofer::async(client, listener.local_address().to_string(), begun);

    const auto echo = [begun, ctx = ctx](gofer::net::conn c, const gofer::context& handling) {
      const gofer::context serving = gofer::net::serving(handling);  // done at the shutdown's start
      char request[5];
      std::error_code ec;
      for (;;) {
        c.wait_readable(serving);  // throws at the shutdown, which is not reported
        if (c.read_full(handling, request, ec) != sizeof request) return;  // the client is gone
        begun.send(true);
        ctx.done().recv();  // stands for work that takes its time
        c.write_all(handling, request);
      }
    };
    gofer::net::serve(ctx, listener, echo, {.max_connections = 1000, .grace = 30s});
    done.get();
    std::puts("all requests are answered");
  });
}
