// Programs that GOFER_TRACE records, and that end in different ways.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/base/assert.h"
#include "scenarios.h"

namespace {

using namespace std::chrono_literals;

void work() {
  gofer::wait_group all;
  for (int i = 0; i < 10; ++i) all.go([] { gofer::sleep_for(1ms); });
  all.wait();
}

int returns() {
  gofer::run(work);
  return 0;
}

int exits() {
  gofer::run([] {
    work();
    std::exit(3);
  });
  return 0;
}

int deadlock() {
  gofer::run([] {
    work();
    gofer::chan<int>(0).recv();
  });
  return 0;
}

int throws() {
  gofer::run([] {
    work();
    throw std::runtime_error("uncaught");
  });
  return 0;
}

int aborts() {
  gofer::run([] {
    work();
    std::abort();
  });
  return 0;
}

struct slow_to_tell : std::exception {
  const char* what() const noexcept override {
    std::this_thread::sleep_for(1600ms);
    return "slow";
  }
};

int throws_slowly() {
  gofer::run([] {
    { const gofer::trace::region region("just before"); }
    throw slow_to_tell();
  });
  return 0;
}

int throws_recorded() {
  gofer::trace::flight_recorder recorder(
      {.keep = 1s, .report_path = gofer::test::scenario_argument});
  recorder.start();
  return throws();
}

int forks() {
  gofer::run(work);
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  waitpid(child, nullptr, 0);
  gofer::run(work);
  return 0;
}

int says_pid() {
  gofer::run([] { std::printf("%d\n", getpid()); });
  return 0;
}

int quick_exits() {
  gofer::run(work);
  std::quick_exit(4);
}

int overflow(int n) {
  volatile char some[1000];
  some[0] = static_cast<char>(n);
  return n < 0 ? 0 : overflow(n + 1) + some[0];
}
int overflows() {
  gofer::run([] {
    work();
    std::exit(overflow(0) == 1);
  });
  return 0;
}

int terminates() {
  gofer::run(work);
  std::thread([] { throw std::runtime_error("uncaught in a thread"); }).join();
  return 0;
}

int asserts() {
  gofer::run([] {
    work();
    gofer::internal::assertion_failed("some condition", "some file", 17);
  });
  return 0;
}

int says_secure() {
  gofer::run([] { std::printf("secure=%lu\n", getauxval(AT_SECURE)); });
  return 0;
}

// The file may become so large that some generations fit.
int appends_beyond_limit() {
  constexpr size_t before = 100'000;
  constexpr rlim_t most = 2'000'000;
  const rlimit limit{most, most};
  gofer::test::require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit of file sizes");
  const int fd = open(gofer::test::scenario_argument, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string text(before, '.');
  gofer::test::require(write(fd, text.data(), before) == ssize_t{before}, "written");
  gofer::trace::start(fd);
  gofer::run([] {
    while (gofer::trace::is_recording()) gofer::yield();
  });
  std::error_code ec;
  gofer::trace::stop(ec);
  gofer::test::require(ec == std::errc::file_too_large, ec.message().c_str());
  return 0;
}

int starts_without_memory() {
  const rlimit limit{1 << 20, 1 << 20};
  gofer::test::require(setrlimit(RLIMIT_AS, &limit) == 0, "a limit of address space");
  std::error_code ec;
  gofer::trace::start(gofer::test::scenario_argument, ec);
  gofer::test::require(ec == std::errc::not_enough_memory, ec.message().c_str());
  gofer::test::require(access(gofer::test::scenario_argument, F_OK) != 0, "no file");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gofer::test::run_scenario(argc, argv,
                                   {{"returns", returns},
                                    {"exits", exits},
                                    {"deadlock", deadlock},
                                    {"throws", throws},
                                    {"aborts", aborts},
                                    {"throws_slowly", throws_slowly},
                                    {"throws_recorded", throws_recorded},
                                    {"forks", forks},
                                    {"says_pid", says_pid},
                                    {"says_secure", says_secure},
                                    {"quick_exits", quick_exits},
                                    {"overflows", overflows},
                                    {"terminates", terminates},
                                    {"asserts", asserts},
                                    {"appends_beyond_limit", appends_beyond_limit},
                                    {"starts_without_memory", starts_without_memory}});
}
