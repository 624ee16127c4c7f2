// The client of the echo workloads: one thread, epoll, on each connection one message on its way.
//
//   echo_client PORT CONNECTIONS MILLISECONDS
//
// prints the requests a second, and the median and the 99th percentile of their times in us. What
// comes before the first third of a second is not counted. It is the same program for every server
// and uses nothing of Gofer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t message_size = 64;
constexpr auto warm_up = 333ms;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "echo_client: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Connection {
  int fd = -1;
  std::size_t heard = 0;
  clock::time_point sent;
};

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) fail("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void send_message(Connection& c) {
  static const std::array<char, message_size> message{};
  c.heard = 0;
  c.sent = clock::now();
  if (send(c.fd, message.data(), message.size(), MSG_NOSIGNAL) != message_size) fail("send");
}

// True: the whole message is back.
bool receive(Connection& c) {
  static std::array<char, 65536> bytes;
  const ssize_t n = recv(c.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return false;
  if (n <= 0) fail("recv");
  c.heard += static_cast<std::size_t>(n);
  return c.heard >= message_size;
}

double percentile(std::vector<float>& times, double part) {
  const auto at =
      times.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: echo_client PORT CONNECTIONS MILLISECONDS\n", stderr);
    return 2;
  }
  const int port = std::atoi(argv[1]);
  std::vector<Connection> connections(static_cast<std::size_t>(std::atoi(argv[2])));
  const auto measured = std::chrono::milliseconds(std::atoi(argv[3]));

  const int poller = epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    connections[i].fd = connect_to(port);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) fail("epoll_ctl");
  }

  const auto begin = clock::now() + warm_up;
  const auto end = begin + measured;
  for (Connection& c : connections) send_message(c);
  std::vector<float> times;
  times.reserve(1 << 20);
  std::array<epoll_event, 1024> events;
  for (auto now = clock::now(); now < end; now = clock::now()) {
    const int n = epoll_wait(poller, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < n; ++i) {
      Connection& c = connections[events[static_cast<std::size_t>(i)].data.u64];
      if (!receive(c)) continue;
      const auto heard = clock::now();
      if (heard >= begin) {
        times.push_back(std::chrono::duration<float, std::micro>(heard - c.sent).count());
      }
      send_message(c);
    }
  }
  if (times.empty()) {
    std::fputs("echo_client: no answers\n", stderr);
    return 1;
  }
  const double seconds = std::chrono::duration<double>(measured).count();
  std::printf("%.0f %.1f %.1f\n", static_cast<double>(times.size()) / seconds,
              percentile(times, 0.50), percentile(times, 0.99));
}
