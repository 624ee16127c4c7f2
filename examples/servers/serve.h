// What the three servers share: the address on the command line, a goroutine for each connection,
// and an orderly end on SIGINT or SIGTERM.
#pragma once

#include <gofer/gofer.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

namespace serve {

/// SIGINT and SIGTERM as a descriptor that becomes readable. To be called before the runtime
/// starts, so that its threads have them blocked, too.
inline int end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Listens at `address`, says where on stdout, and calls handle(connection) in a goroutine of its
/// own for each one that comes, until end_signals is readable. Then those that are open are closed,
/// and it returns when the last of their goroutines has. What handle throws ends its connection.
inline int serve(int end_signals, const std::string& address,
                 std::function<void(gofer::net::conn)> handle) {
  return gofer::run([&] {
    const gofer::net::listener listener = gofer::net::listen(address);
    std::printf("listening at %s\n", listener.local_address().to_string().c_str());
    std::fflush(stdout);

    auto [ctx, cancel] = gofer::with_cancel(gofer::background());
    gofer::go([listener, cancel = cancel, ends = gofer::fd(end_signals)] {
      ends.wait_readable();
      cancel();
      listener.close();
    });

    gofer::wait_group connections;
    for (;;) {
      std::error_code ec;
      const gofer::net::conn c = listener.accept(ec);
      if (ec) {
        if (!ctx.err()) std::fprintf(stderr, "accept: %s\n", ec.message().c_str());
        break;
      }
      connections.go([&handle, c, ctx = ctx] {
        const auto stay_open = gofer::after_func(ctx, [c] { c.close(); });
        try {
          handle(c);
        } catch (const std::exception& e) {
          if (!ctx.err()) std::fprintf(stderr, "connection: %s\n", e.what());
        }
        stay_open();
      });
    }
    connections.wait();
    return 0;
  });
}

}  // namespace serve
