// An echo server: what a connection sends comes back.
//
//   echo 127.0.0.1:7000        and then, elsewhere: nc 127.0.0.1 7000
#include "serve.h"

int main(int argc, char** argv) {
  const int ends = serve::end_signals();
  return serve::serve(ends, argc > 1 ? argv[1] : "127.0.0.1:7000", [](gofer::net::conn c) {
    char bytes[4096];
    while (const std::size_t n = c.read(bytes)) c.write_all({bytes, n});
  });
}
