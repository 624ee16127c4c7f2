// Retry with a rate limit: calls that fail for a while are tried again, after pauses that grow, and
// all callers together stay below what the service allows.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>

using namespace std::chrono_literals;

bool is_temporary(const std::error_code& ec) {
  return ec == std::errc::connection_refused || ec == std::errc::connection_reset ||
         ec == std::errc::resource_unavailable_try_again;
}

template <class F>
auto retry(const gofer::context& ctx, gofer::rate_limiter& limit, int attempts, F call) {
  std::chrono::nanoseconds pause = 1ms;
  for (int attempt = 1;; ++attempt) {
    if (!limit.wait(ctx)) {  // the context is done, or will be before it is this call's turn
      ctx.throw_if_done();
      throw std::system_error(gofer::context_errc::deadline_exceeded);
    }
    try {
      return call();
    } catch (const std::system_error& e) {
      std::printf("attempt %d: %s\n", attempt, e.code().message().c_str());
      if (!is_temporary(e.code()) || attempt == attempts) throw;
    }
    if (!gofer::sleep_for(ctx, pause)) ctx.throw_if_done();
    pause *= 2;
  }
}

int main() {
  gofer::run([] {
    gofer::rate_limiter limit(100, 5);  // 100 calls a second, 5 of them at once
    auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 60s);
    gofer::cancel_guard at_end(cancel);

    int calls = 0;
    const std::string page = retry(ctx, limit, 5, [&]() -> std::string {
      if (++calls < 3) throw std::system_error(make_error_code(std::errc::connection_refused));
      return "the page";
    });
    std::printf("%s after %d calls\n", page.c_str(), calls);
  });
}
