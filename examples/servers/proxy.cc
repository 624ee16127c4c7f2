// A TCP proxy: joins every connection to another one, to a fixed address, until both sides have
// sent everything.
//
//   proxy 127.0.0.1:7001 example.org:80
#include <chrono>
#include <cstdio>
#include <string>

#include "announce.h"

using namespace std::chrono_literals;

namespace {

// One direction: until `from` has no more to say, which is then passed on.
void copy(const gofer::net::conn& from, const gofer::net::conn& to) {
  char bytes[32 * 1024];
  while (const std::size_t n = from.read(bytes)) to.write_all({bytes, n});
  to.shutdown_write();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: proxy LISTEN-ADDRESS TARGET-ADDRESS\n");
    return 2;
  }
  return gofer::run([=] {
    const std::string target = argv[2];
    const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    const auto listener = announce(gofer::net::listen(argv[1]));
    gofer::net::serve(ctx, listener,
                      [target](gofer::net::conn client, const gofer::context& handling) {
                        const auto [dialling, cancel] = gofer::with_timeout(handling, 10s);
                        const gofer::net::conn server = gofer::net::dial(dialling, target);
                        cancel();
                        gofer::task_group directions(handling);  // the first error ends both
                        const auto cut = gofer::after_func(directions.ctx(), [=] {
                          client.close();
                          server.close();
                        });
                        directions.go([=] { copy(client, server); });
                        directions.go([=] { copy(server, client); });
                        directions.wait();
                      },
                      {.grace = 1s});
    return 0;
  });
}
