// An echo server under a client of its own process, which is the same for all servers (client/).
#include <fcntl.h>
#include <gofer/gofer.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "workloads.h"

namespace bench {
namespace {

// Beside this program, unless the environment says otherwise.
std::string client_path() {
  if (const char* path = std::getenv("ECHO_CLIENT"); path != nullptr) return path;
  char self[4096];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
  check(n > 0, "readlink /proc/self/exe");
  const std::string path(self, static_cast<std::size_t>(n));
  return path.substr(0, path.rfind('/') + 1) + "echo_client";
}

std::string run_client(int port, int connections, long ms) {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  std::string words[] = {client_path(), std::to_string(port), std::to_string(connections),
                         std::to_string(ms)};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid;
  check(posix_spawn(&pid, argv[0], &actions, nullptr, argv, environ) == 0,
        "echo_client cannot be started");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const gofer::fd out(ends[0]);
  std::string said;
  char bytes[256];
  while (const std::size_t n = out.read(bytes)) said.append(bytes, n);
  int status = -1;
  gofer::blocking([&] { waitpid(pid, &status, 0); });
  check(status == 0, "echo_client failed");
  return said;
}

void serve(const gofer::net::listener& listener) {
  std::error_code ec;
  for (;;) {
    const gofer::net::conn c = listener.accept(ec);
    if (ec) return;
    gofer::go([c] {
      char bytes[4096];
      std::error_code failed;
      while (const std::size_t n = c.read(bytes, failed)) c.write_all({bytes, n}, failed);
    });
  }
}

void echo(const job& j, const std::string& name, int connections, int spinners) {
  const gofer::net::listener listener = gofer::net::listen("127.0.0.1:0");
  gofer::go([=] { serve(listener); });
  for (int i = 0; i < spinners; ++i) {
    gofer::go([] {
      for (;;) asm volatile("");
    });
  }
  const std::string said = run_client(listener.local_address().port(), connections, j.n);
  listener.close();
  double rate = 0;
  double p50 = 0;
  double p99 = 0;
  check(std::sscanf(said.c_str(), "%lf %lf %lf", &rate, &p50, &p99) == 3, "echo_client's answer");
  j.report(name, rate, "req/s");
  j.report(name + "_p50", p50, "us");
  j.report(name + "_p99", p99, "us");
}

// n connections, both ends in this process, each end with a goroutine that waits for it.
void idle_connections(const job& j) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const gofer::net::listener listener = gofer::net::listen("127.0.0.1:0");
  const std::string address = listener.local_address().to_string();
  gofer::chan<std::monostate> waiting(0);
  const auto wait = [waiting](const gofer::net::conn& c) {
    char bytes[64];
    std::error_code ec;
    waiting.send({});
    (void)c.read(bytes, ec);
  };
  const memory before = read_memory();
  gofer::go([=] {
    std::error_code ec;
    for (;;) {
      gofer::net::conn c = listener.accept(ec);
      if (ec) return;
      gofer::go([=] { wait(c); });
    }
  });
  for (long i = 0; i < j.n; ++i) {
    gofer::go([=, c = gofer::net::dial(address)] { wait(c); });
    waiting.recv();
    waiting.recv();
  }
  const memory after = read_memory();
  j.report("idle_connections",
           static_cast<double>(after.resident_bytes - before.resident_bytes) /
               static_cast<double>(2 * j.n),
           "bytes");
}

void echo_1(const job& j) { echo(j, "echo_1", 1, 0); }
void echo_100(const job& j) { echo(j, "echo_100", 100, 0); }
void echo_1000(const job& j) { echo(j, "echo_1000", 1000, 0); }
void echo_beside_4(const job& j) { echo(j, "echo_beside_4", 100, 4); }
void echo_beside_16(const job& j) { echo(j, "echo_beside_16", 100, 16); }

const suite echoes{
    {"echo_1", echo_1, 1500},
    {"echo_100", echo_100, 1500},
    {"echo_1000", echo_1000, 1500},
    {"echo_beside_4", echo_beside_4, 1500},
    {"echo_beside_16", echo_beside_16, 1500},
    {"idle_connections", idle_connections, 5000},
};

}  // namespace
}  // namespace bench
