// gofer_bench: runs one workload and prints its figures.
//
//   gofer_bench NAME [-n N]     lines of NAME procs=P value=V unit=U
//   gofer_bench --list          the names, one a line
//   gofer_bench --about         what compiled this program, and whether it was optimised
//
// The number of processors comes from GOMAXPROCS, as in every program of Gofer. Usually run.py
// starts it, in turn with its peers.
#include "workloads.h"

#include <gofer/go.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace bench {
namespace {

std::vector<workload>& table() {
  static std::vector<workload> workloads;
  return workloads;
}

int usage() {
  std::fputs("usage: gofer_bench NAME [-n N] | --list | --about\n", stderr);
  return 2;
}

int print_list() {
  for (const workload& w : suite::all()) {
    std::printf("%.*s\n", static_cast<int>(w.name.size()), w.name.data());
  }
  return 0;
}

int print_about() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "g++ " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  const char* optimised = "yes";
#else
  const char* optimised = "no";
#endif
  std::printf("compiler=%s\noptimised=%s\n", compiler, optimised);
  return 0;
}

bool parse_count(const char* text, long& n) {
  char* end = nullptr;
  errno = 0;
  n = std::strtol(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && n > 0;
}

void execute(const workload& w, long n) {
  if (w.runs_in == model::thread) {
    w.body({n, static_cast<int>(std::thread::hardware_concurrency()), w.name});
    return;
  }
  gofer::run([&w, n] { w.body({n, gofer::gomaxprocs(0), w.name}); });
}

int start(int argc, char** argv) {
  if (argc < 2) return usage();
  const std::string_view name = argv[1];
  if (argc == 2 && name == "--list") return print_list();
  if (argc == 2 && name == "--about") return print_about();
  const workload* w = suite::find(name);
  if (w == nullptr) {
    std::fprintf(stderr, "gofer_bench: no workload named %s (see --list)\n", argv[1]);
    return 2;
  }
  long n = w->n;
  if (argc != 2 && (argc != 4 || std::string_view(argv[2]) != "-n" || !parse_count(argv[3], n))) {
    return usage();
  }
  execute(*w, n);
  return 0;
}

}  // namespace

suite::suite(std::initializer_list<workload> workloads) {
  table().insert(table().end(), workloads.begin(), workloads.end());
}

const std::vector<workload>& suite::all() { return table(); }

const workload* suite::find(std::string_view name) {
  for (const workload& w : table()) {
    if (w.name == name) return &w;
  }
  return nullptr;
}

void job::report(std::string_view name, double value, std::string_view unit) const {
  std::printf("%.*s procs=%d value=%.3f unit=%.*s\n", static_cast<int>(name.size()), name.data(),
              procs, value, static_cast<int>(unit.size()), unit.data());
  std::fflush(stdout);
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "gofer_bench: wrong result: %s\n", what);
  std::abort();
}

long fib_value(long n) {
  long value = 0;
  long next = 1;
  for (long i = 0; i < n; ++i) {
    const long sum = value + next;
    value = next;
    next = sum;
  }
  return value;
}

long fib_branches(long n) { return fib_value(n + 1) - 1; }

}  // namespace bench

int main(int argc, char** argv) { return bench::start(argc, argv); }
