// An echo server: what a connection sends comes back. SIGINT or SIGTERM ends it when what it has
// read by then has come back.
//
//   echo 127.0.0.1:7000        and then, elsewhere: nc 127.0.0.1 7000
#include "announce.h"

int main(int argc, char** argv) {
  return gofer::run([=] {
    const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    const auto listener = announce(gofer::net::listen(argc > 1 ? argv[1] : "127.0.0.1:7000"));
    gofer::net::serve(ctx, listener, [](gofer::net::conn c, const gofer::context& handling) {
      const gofer::context serving = gofer::net::serving(handling);
      char bytes[4096];
      for (;;) {
        c.wait_readable(serving);  // a shutdown ends the wait, and the handler
        const std::size_t n = c.read(handling, bytes);
        if (n == 0) return;
        c.write_all(handling, {bytes, n});
      }
    });
    return 0;
  });
}
