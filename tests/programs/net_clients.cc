// Clients of an echo server, of plain sockets: net_clients <address> <port> <idle> <busy> <rounds>.
// The server says "!" to each connection first. The idle ones are open while the busy ones send and
// receive; in the end each of them is answered too.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void send_to(int s, int value) {
  if (write(s, &value, sizeof value) != sizeof value) fail("write");
}

void expect_from(int s, const void* wanted, std::size_t size) {
  char bytes[sizeof(int)];
  if (recv(s, bytes, size, MSG_WAITALL) != static_cast<ssize_t>(size)) fail("read");
  if (std::memcmp(bytes, wanted, size) != 0) {
    std::fputs("another answer\n", stderr);
    std::exit(1);
  }
}

// No more at a time than any kernel keeps for a server that has yet to accept them.
std::vector<int> connect_all(const sockaddr_in& server, int count) {
  constexpr int at_a_time = 50;
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0) fail("socket");
    if (connect(s, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) fail("connect");
    all.push_back(s);
    if ((i + 1) % at_a_time != 0 && i + 1 != count) continue;
    for (int k = i - i % at_a_time; k <= i; ++k)
      expect_from(all[static_cast<std::size_t>(k)], "!", 1);
  }
  return all;
}

void echo(const std::vector<int>& all, int value) {
  for (const int s : all) send_to(s, value + s);
  for (const int s : all) {
    const int wanted = value + s;
    expect_from(s, &wanted, sizeof wanted);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<in_port_t>(std::atoi(argv[2])));
  if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) return 2;
  const std::vector<int> idle = connect_all(server, std::atoi(argv[3]));
  const std::vector<int> busy = connect_all(server, std::atoi(argv[4]));
  const int rounds = std::atoi(argv[5]);
  for (int round = 0; round < rounds; ++round) echo(busy, round);
  std::puts("busy ones served");
  echo(idle, 1);
  std::puts("idle ones served");
  return 0;
}
