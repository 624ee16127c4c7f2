// Programs whose goroutines do nothing but use locks that are not theirs and have no owner to be
// found: those of malloc, of stdio, of the unwinder, of static initialisation, and spin locks.
#include <dlfcn.h>
#include <gofer/gofer.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/scaled.h"
#include "measured.h"

namespace {

using namespace gofer::test;

// Many goroutines, each of which calls f(its number) that often. They are more than there may be
// threads, and each takes some slices.
template <class F>
int storm(int times, F f) {
  return measured([times, &f] {
    const int goroutines = scaled(180);
    const int each = scaled(times);
    std::atomic<int> done{0};
    gofer::wait_group wg;
    for (int i = 0; i < goroutines; ++i) {
      wg.go([&, i] {
        for (int k = 0; k < each; ++k) f(i);
        ++done;
      });
    }
    wg.wait();
    require(done == goroutines, "all are done");
  });
}

// Blocks of many sizes. Some are freed by another goroutine than the one that allocated them, so
// that heaps are shared between threads.
int allocate() {
  static std::array<std::atomic<unsigned char*>, 64> shared{};
  return storm(3000, [](int i) {
    std::array<unsigned char*, 32> blocks{};
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const std::size_t size = 16 + (k * 97 + static_cast<std::size_t>(i) * 31) % 3000;
      blocks[k] = static_cast<unsigned char*>(std::malloc(size));
      require(blocks[k] != nullptr, "memory");
      blocks[k][0] = blocks[k][size - 1] = static_cast<unsigned char>(i);
    }
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      require(blocks[k][0] == static_cast<unsigned char>(i), "the block is ours");
      std::free(k % 4 == 0 ? shared[k].exchange(blocks[k]) : blocks[k]);
    }
  });
}

[[gnu::noinline]] void throw_below(int depth) {
  const std::string local = "long enough for a block of the heap, frame " + std::to_string(depth);
  if (depth == 0) throw std::runtime_error(local);
  throw_below(depth - 1);
  asm volatile("" : : "r"(local.data()));
}

int throwing() {
  return storm(1400, [](int) {
    bool caught = false;
    try {
      throw_below(2);
    } catch (const std::runtime_error&) {
      caught = true;
    }
    require(caught, "the exception");
  });
}

int printing() {
  static std::FILE* const out = std::fopen("/dev/null", "w");
  return storm(25'000, [](int i) { require(std::fprintf(out, "%d %f\n", i, 0.5) > 0, "printed"); });
}

std::regex pattern_of_three() { return std::regex("([a-z]+)-([0-9]+)-(x|y|z)*"); }

int matching() {
  // libstdc++ fills a cache of the locale at the first use of each character, and writes it without
  // a lock. The bytes that it writes are always the same, but TSan reports the race.
  pattern_of_three();
  return storm(80, [](int i) {
    const std::regex pattern = pattern_of_three();
    const std::string text = "goroutine-" + std::to_string(i) + "-xyz";
    std::smatch match;
    require(std::regex_match(text, match, pattern) && match[2] == std::to_string(i), "a match");
  });
}

int streaming() {
  return storm(4500, [](int i) {
    std::ostringstream out;
    out << "goroutine " << i << ' ' << 1.5;
    std::istringstream in(out.str());
    std::string word;
    int number = -1;
    in >> word >> number;
    require(number == i, "the number");
  });
}

std::atomic<int> initialised{0};

template <int N>
int lazy() {
  static const std::vector<int> value = [] {
    ++initialised;
    compute_steps(100'000);
    return std::vector<int>(N + 1, N);
  }();
  return value.back();
}

template <int... N>
int sum_of_lazy(std::integer_sequence<int, N...>) {
  return (lazy<N>() + ...);
}

// All goroutines come to the same objects, each of which takes a while to be made by one of them.
int initialising() {
  constexpr int objects = 200;
  const int status = storm(1, [](int) {
    require(sum_of_lazy(std::make_integer_sequence<int, objects>{}) == objects * (objects - 1) / 2,
            "all objects");
  });
  require(initialised == objects, "each was made once");
  return status;
}

constexpr long inside = 100;  // steps of computing with a lock, and as many without

// A lock of the program's own, which waits for its turn by computing.
int spin_lock() {
  static std::atomic_flag taken = ATOMIC_FLAG_INIT;
  static std::atomic<long> within{0};
  return storm(8000, [](int) {
    while (taken.test_and_set(std::memory_order_acquire)) asm volatile("pause");
    require(++within == 1, "alone");
    compute_steps(inside);
    --within;
    taken.clear(std::memory_order_release);
    compute_steps(inside);
  });
}

// Another, which sleeps in std::atomic::wait: 0 is free, 1 is taken, 2 is taken and waited for.
int atomic_wait_lock() {
  static std::atomic<int> state{0};
  static std::atomic<long> within{0};
  return storm(12'000, [](int) {
    int free = 0;
    if (!state.compare_exchange_strong(free, 1)) {
      while (state.exchange(2) != 0) state.wait(2);
    }
    require(++within == 1, "alone");
    compute_steps(inside);
    --within;
    if (state.exchange(0) == 2) state.notify_one();
    compute_steps(inside);
  });
}

// A tree of goroutines, each with a block of the heap, that sums its leaves over channels.
void skynet_node(const gofer::chan<long>& parent, long first, long leaves) {
  const std::vector<char> block(300, static_cast<char>(first));
  long sum = first;
  if (leaves > 1) {
    const gofer::chan<long> here(0);
    for (long i = 0; i < 10; ++i) {
      gofer::go(
          [here, from = first + i * leaves / 10, leaves] { skynet_node(here, from, leaves / 10); });
    }
    sum = 0;
    for (int i = 0; i < 10; ++i) sum += *here.recv();
  }
  require(block.back() == static_cast<char>(first), "the block is ours");
  parent.send(sum);
}

// Beside processes that leave it little of the machine: a thread then loses its core anywhere, in
// malloc as well.
int skynet_beside_burners() {
  Burners burners(2);
  return measured([] {
    long leaves = gofer::internal::sanitizers_enabled ? 10'000 : 100'000;
    for (int round = 0; round < 5; ++round) {
      const gofer::chan<long> result(0);
      gofer::go([result, leaves] { skynet_node(result, 0, leaves); });
      require(*result.recv() == leaves * (leaves - 1) / 2, "the sum");
    }
  });
}

// Which library malloc is from.
int allocator() {
  Dl_info info{};
  require(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0, "malloc is somewhere");
  say(info.dli_fname);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"allocate", allocate},
                       {"throw", throwing},
                       {"printf", printing},
                       {"regex", matching},
                       {"iostream", streaming},
                       {"static", initialising},
                       {"spin_lock", spin_lock},
                       {"atomic_wait", atomic_wait_lock},
                       {"skynet_beside_burners", skynet_beside_burners},
                       {"allocator", allocator}});
}
