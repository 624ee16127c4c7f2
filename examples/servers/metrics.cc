// Numbers of the scheduler for Prometheus: GET /metrics has its text, GET /metrics.json the same as
// JSON. Goroutines that compute, sleep and wait for each other give the numbers something to tell.
//
//   metrics 127.0.0.1:7003        and then: curl http://127.0.0.1:7003/metrics
//
// This is no more of HTTP than a client that asks for one page needs: each connection has one
// request, of which the first line counts.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "announce.h"

using namespace std::chrono_literals;

namespace {

constexpr std::size_t longest_request = 8192;

// The path of a GET request, read to the empty line at its end. Nothing: it is no such request.
std::optional<std::string> read_request(const gofer::net::conn& c) {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    char bytes[1024];
    const std::size_t n = c.read(bytes);
    if (n == 0 || request.size() + n > longest_request) return std::nullopt;
    request.append(bytes, n);
  }
  constexpr std::string_view get = "GET ";
  const std::size_t end = request.find(' ', get.size());
  if (!request.starts_with(get) || end == std::string::npos) return std::nullopt;
  return request.substr(get.size(), end - get.size());
}

void answer(const gofer::net::conn& c, std::string_view status, std::string_view type,
            std::string_view body) {
  std::string head = "HTTP/1.1 ";
  head.append(status).append("\r\nContent-Type: ").append(type);
  head.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  head.append("\r\nConnection: close\r\n\r\n");
  c.write_all(head);
  c.write_all(body);
}

void serve_one(const gofer::net::conn& c) {
  c.set_deadline(10s);
  const std::optional<std::string> path = read_request(c);
  if (!path) {
    answer(c, "400 Bad Request", "text/plain", "GET /metrics\n");
  } else if (*path == "/metrics") {
    answer(c, "200 OK", "text/plain; version=0.0.4", gofer::debug::prometheus());
  } else if (*path == "/metrics.json") {
    answer(c, "200 OK", "application/json", gofer::debug::metrics_json());
  } else {
    answer(c, "404 Not Found", "text/plain", "GET /metrics\n");
  }
}

// What a program does: here it passes values through a channel, computes a little, and sleeps.
void work(const gofer::context& ctx) {
  gofer::chan<int> values(16);
  gofer::wait_group workers;
  for (int i = 0; i < 4; ++i) {
    workers.go([&values] {
      for (const int steps : values) {
        for (int k = 0; k < steps; ++k) asm volatile("");
      }
    });
  }
  while (!ctx.err()) {
    for (int i = 0; i < 100; ++i) values.send(10'000);
    gofer::sleep_for(10ms);
  }
  values.close();
  workers.wait();
}

}  // namespace

int main(int argc, char** argv) {
  return gofer::run([=] {
    const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    const auto listener = announce(gofer::net::listen(argc > 1 ? argv[1] : "127.0.0.1:7003"));
    gofer::wait_group working;
    working.go([&ctx = ctx] { work(ctx); });
    gofer::net::serve(ctx, listener, [](gofer::net::conn c) { serve_one(c); });
    working.wait();
    return 0;
  });
}
