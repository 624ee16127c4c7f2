// Goroutines that compute are paused wherever they are, and others run meanwhile: with locks, in
// malloc and stdio, while an exception flies, deep in a stack, with any register in use.
// gofer-test: stress
#include <cpuid.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <immintrin.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/procs/current.h"
#include "runtime/threads/m_table.h"
#include "runtime/watch/preempt.h"
#include "support/beside.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using internal::m_table;
using namespace test;

using Preempt = PausingTest;

TEST_F(Preempt, SpinnersLetALightGoroutineRun) {
  spin_beside_light([](int) {
    compute(1000);
    return true;
  });
}

TEST_F(Preempt, SpinnersTakeTurns) {
  Procs one(1);
  constexpr int spinners = 4;
  std::array<std::atomic<int64_t>, spinners> turns{};
  std::atomic<int> last{-1};
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < spinners; ++i) {
    all.go([&, i] {
      while (!stop) {
        if (last.exchange(i) != i) turns[static_cast<size_t>(i)].fetch_add(1);
        compute(100);
      }
    });
  }
  EXPECT_TRUE(go_on_until([&] {
    for (auto& t : turns) {
      if (t < 3) return false;
    }
    return true;
  }));
  stop = true;
  all.wait();
}

// ---- anywhere in libc and the runtime of C++

template <class Mutex>
void pause_with_held() {
  const Procs one(1);  // with more, those that wait for the lock leave them idle
  Mutex m;
  int64_t guarded = 0;
  std::atomic<int64_t> sum{0};
  spin_beside_light([&](int) {
    std::lock_guard lock(m);
    const int64_t before = guarded;
    compute(5000);
    guarded = before + 1;
    sum.fetch_add(1);
    return true;
  });
  EXPECT_EQ(guarded, sum);
}

TEST_F(Preempt, WithAMutexHeld) { pause_with_held<std::mutex>(); }
TEST_F(Preempt, WithAGoroutinesMutexHeld) { pause_with_held<mutex>(); }

TEST_F(Preempt, InMallocAndFree) {
  spin_beside_light([](int me) {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t i = 0; i < 50; ++i) {
      blocks.push_back(std::make_unique<char[]>(i * 97 % 5000 + 1));
      blocks.back()[0] = static_cast<char>(me);
      if (i % 3 == 2) blocks[i / 2].reset();
    }
    for (auto& b : blocks) {
      if (b != nullptr && b[0] != static_cast<char>(me)) return false;
    }
    return true;
  });
}

TEST_F(Preempt, InStdio) {
  Procs one(1);  // with more, those that wait for the lock leave them idle
  FILE* null = std::fopen("/dev/null", "w");
  ASSERT_NE(null, nullptr);
  spin_beside_light([&](int me) {
    char text[100];
    const int n = std::snprintf(text, sizeof text, "%d %.3f %s", me, me * 1.5, "text");
    std::fprintf(null, "%s %g\n", text, 1.0 / (me + 1));
    char expected[100];
    return n > 0 && std::snprintf(expected, sizeof expected, "%d %.3f text", me, me * 1.5) == n &&
           std::strcmp(text, expected) == 0;
  });
  std::fclose(null);
}

TEST_F(Preempt, InARegularExpression) {
  spin_beside_light([](int me) {
    const std::regex pattern("(a+)(b|c)*([0-9]+)");
    std::smatch match;
    const std::string text = "aaabcbcb" + std::to_string(me);
    return std::regex_match(text, match, pattern) && match[3] == std::to_string(me);
  });
}

[[gnu::noinline]] int throw_from(int depth, int value) {
  if (depth == 0) throw std::runtime_error(std::to_string(value));
  const std::string guard(40, 'x');  // with a destructor, in each frame
  return throw_from(depth - 1, value) + static_cast<int>(guard.size());
}

TEST_F(Preempt, WhileAnExceptionFlies) {
  spin_beside_light([](int me) {
    try {
      throw_from(5, me);
    } catch (const std::runtime_error& e) {
      return e.what() == std::to_string(me);
    }
    return false;
  });
}

TEST_F(Preempt, InNestedHandlers) {
  spin_beside_light([](int me) {
    try {
      throw_from(2, me);
    } catch (const std::runtime_error& outer) {
      compute(2000);
      try {
        throw_from(3, me + 1000);
      } catch (const std::runtime_error& inner) {
        compute(2000);
        if (inner.what() != std::to_string(me + 1000)) return false;
      }
      try {
        throw;
      } catch (const std::runtime_error& again) {
        return again.what() == std::to_string(me) && outer.what() == std::to_string(me) &&
               std::uncaught_exceptions() == 0;
      }
    }
    return false;
  });
}

// ---- what belongs to the thread stays as it is

thread_local int64_t mine = 0;

TEST_F(Preempt, ThreadLocalsAndErrnoStay) {
  static std::atomic<int64_t> next{0};
  spin_beside_light([](int) {
    const int64_t value = ++next;
    mine = value;
    int64_t* address = &mine;
    errno = static_cast<int>(value % 100);
    int* error = &errno;
    const int thread = internal::os::thread_id();
    compute(300'000);
    return &mine == address && mine == value && &errno == error &&
           errno == static_cast<int>(value % 100) && internal::os::thread_id() == thread;
  });
}

TEST_F(Preempt, VectorRegistersStay) {
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "no AVX here";
  spin_beside_light([](int me) {
    alignas(32) std::array<uint64_t, 4 * 4> in;
    alignas(32) std::array<uint64_t, 4 * 4> out{};
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = i * 0x0101010101010101 + static_cast<unsigned>(me);
    asm volatile(
        "vmovdqu (%0), %%ymm0\n vmovdqu 32(%0), %%ymm7\n vmovdqu 64(%0), %%ymm8\n"
        "vmovdqu 96(%0), %%ymm15\n"
        "mov $300000, %%rcx\n 1: dec %%rcx\n jnz 1b\n"
        "vmovdqu %%ymm0, (%1)\n vmovdqu %%ymm7, 32(%1)\n vmovdqu %%ymm8, 64(%1)\n"
        "vmovdqu %%ymm15, 96(%1)\n vzeroupper\n"
        :
        : "r"(in.data()), "r"(out.data())
        : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
          "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return in == out;
  });
}

TEST_F(Preempt, WideVectorAndMaskRegistersStay) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here";
  spin_beside_light([](int me) {
    std::array<uint64_t, 8> in;
    std::array<uint64_t, 8> out{};
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = i * 0x0202020202020202 + static_cast<unsigned>(me);
    uint32_t mask = 0x1234u + static_cast<unsigned>(me);
    uint32_t mask_after = 0;
    asm volatile(
        "vmovdqu64 (%1), %%zmm31\n kmovw %3, %%k5\n"
        "mov $300000, %%rcx\n 1: dec %%rcx\n jnz 1b\n"
        "vmovdqu64 %%zmm31, (%2)\n kmovw %%k5, %0\n vzeroupper\n"
        : "=&r"(mask_after)
        : "r"(in.data()), "r"(out.data()), "r"(mask)
        : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
          "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return in == out && (mask_after & 0xffff) == (mask & 0xffff);
  });
}

uint16_t x87_control() {
  uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
void set_x87_control(uint16_t word) { asm volatile("fldcw %0" : : "m"(word)); }

TEST_F(Preempt, FloatingPointControlWordsStay) {
  const unsigned default_mxcsr = _mm_getcsr();
  const uint16_t default_x87 = x87_control();
  spin_beside_light([&](int me) {
    // Each goroutine another rounding mode.
    const unsigned mxcsr = (default_mxcsr & ~0x6000u) | static_cast<unsigned>(me % 4) << 13;
    const auto x87 = static_cast<uint16_t>((default_x87 & ~0x0c00) | me % 4 << 10);
    _mm_setcsr(mxcsr);
    set_x87_control(x87);
    compute(300'000);
    const bool good = (_mm_getcsr() & ~0x3fu) == (mxcsr & ~0x3fu) && x87_control() == x87;
    _mm_setcsr(default_mxcsr);
    set_x87_control(default_x87);
    return good;
  });
}

// Flags, the red zone and all general registers: a computation that is known to the last bit.
[[gnu::noinline]] uint64_t scramble(uint64_t x) {
  uint64_t state[8];
  for (uint64_t i = 0; i < 8; ++i) state[i] = x + i;
  for (int round = 0; round < 20'000; ++round) {
    for (size_t i = 0; i < 8; ++i) {
      state[i] ^= state[(i + 3) % 8] << 13 | state[(i + 5) % 8] >> 51;
      state[i] += state[(i + 1) % 8] > state[(i + 2) % 8] ? 0x9e3779b97f4a7c15 : x;
    }
  }
  uint64_t sum = 0;
  for (uint64_t s : state) sum ^= s;
  return sum;
}

TEST_F(Preempt, AComputationIsNotDisturbed) {
  const uint64_t expected = scramble(42);
  spin_beside_light([&](int) { return scramble(42) == expected; });
}

// ---- near the end of a stack

// Computes when less than `left` bytes are left of the stack.
[[gnu::noinline]] bool descend(const char* stack_end, size_t left) {
  volatile char frame[256];
  frame[0] = 1;
  frame[255] = 2;
  const auto here = reinterpret_cast<uintptr_t>(&frame[0]);
  if (here - reinterpret_cast<uintptr_t>(stack_end) < left) {
    compute(300'000);
    return frame[0] == 1 && frame[255] == 2;
  }
  return descend(stack_end, left) && frame[0] == 1 && frame[255] == 2;
}

void spin_deep(size_t size) {
  spin_beside_light(
      [](int) {
        const internal::G* g = internal::current_m()->curg;
        const char* usable = g->stack() + internal::stack_guard_size;
        return descend(usable, 1500);
      },
      20, {.stack_size = size});
}

TEST_F(Preempt, NearTheEndOfASmallStack) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "frames are larger";
  spin_deep(size_t{64} << 10);
}

TEST_F(Preempt, NearTheEndOfAStackOfDefaultSize) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "frames are larger";
  spin_deep(0);
}

// ---- no_preempt

// Times that `light` was woken while this goroutine, which must not be paused, computed.
int64_t woken_during(const Light& light, std::chrono::milliseconds time) {
  const int64_t before = light.woken();
  const auto end = clock::now() + time;
  while (clock::now() < end) compute(1000);
  return light.woken() - before;
}

// Runs f, at P=1 beside a light goroutine, in a goroutine; then another that spins is paused.
void beside_light_at_one(const std::function<void(const Light&)>& f) {
  Procs one(1);
  Light light;
  std::atomic<bool> stop{false};
  wait_group all;
  all.go([&] {
    f(light);
    while (!stop) compute(1000);
  });
  EXPECT_TRUE(wait_until([&] { return light.woken() >= 5; }));
  const int64_t before = light.woken();
  EXPECT_TRUE(wait_until([&] { return light.woken() >= before + 5; }));
  stop = true;
  all.wait();
}

TEST_F(Preempt, NotInANoPreemptScope) {
  std::atomic<int64_t> woken{-1};
  beside_light_at_one([&](const Light& light) {
    no_preempt scope;
    woken = woken_during(light, 60ms);
  });
  EXPECT_EQ(woken, 0);
}

TEST_F(Preempt, NotInNestedNoPreemptScopes) {
  std::atomic<int64_t> woken{-1};
  beside_light_at_one([&](const Light& light) {
    no_preempt outer;
    {
      no_preempt middle;
      no_preempt inner;
      woken = woken_during(light, 20ms);
    }
    woken += woken_during(light, 40ms);
  });
  EXPECT_EQ(woken, 0);
}

TEST_F(Preempt, NoPreemptScopeLastsAcrossAPark) {
  std::atomic<int64_t> woken{-1};
  beside_light_at_one([&](const Light& light) {
    no_preempt outer;
    sleep_for(3ms);
    no_preempt inner;
    yield();
    woken = woken_during(light, 60ms);
  });
  EXPECT_EQ(woken, 0);
}

// The thread of a parked goroutine that is not to be paused runs others that may be.
TEST_F(Preempt, NoPreemptScopeOfAParkedGoroutineIsNoneOfOthers) {
  Procs one(1);
  wait_group end;
  end.add(1);
  wait_group parked;
  for (int i = 0; i < 10; ++i) {
    parked.go([&] {
      no_preempt scope;
      end.wait();
    });
  }
  spin_beside_light([](int) {
    compute(1000);
    return true;
  });
  end.done();
  parked.wait();
}

TEST_F(Preempt, NoPreemptInAnOrdinaryThreadDoesNothing) {
  no_preempt scope;
  no_preempt again;
}

// 255 may be nested.
TEST_F(Preempt, ManyNestedNoPreemptScopesEndTogether) {
  beside_light_at_one([](const Light&) {
    std::vector<std::unique_ptr<no_preempt>> scopes(255);
    for (auto& s : scopes) s = std::make_unique<no_preempt>();
  });
}

// ---- together with the rest

TEST_F(Preempt, OfLockedGoroutinesStaysOnTheirThreads) {
  spin_beside_light([](int) {
    lock_os_thread();
    const int thread = internal::os::thread_id();
    compute(10'000'000);
    yield();
    const bool stayed = internal::os::thread_id() == thread;
    unlock_os_thread();
    return stayed;
  });
}

// A goroutine that calls the runtime often is stopped there and need not be paused.
TEST_F(Preempt, BetweenCallsOfTheRuntime) {
  const auto step = [](int) {
    chan<int> c(1);
    mutex m;
    wait_group child;
    for (int i = 0; i < 20; ++i) {
      c.send(i);
      compute(i * 500);
      child.go([&] {
        std::lock_guard lock(m);
        compute(2000);
      });
      if (c.recv() != i) return false;
    }
    child.wait();
    return true;
  };
  spin_beside_light(step, 0);
}

TEST_F(Preempt, SignalsAtAnyMomentDoNoHarm) {
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    while (!stop) {
      for (uint32_t id = 1;; ++id) {
        internal::M* m = m_table[id].load();
        if (m == nullptr) break;
        if (m->tid != 0) internal::signal_m(m);
      }
      std::this_thread::sleep_for(50us);
    }
  });
  spin_beside_light(
      [](int me) {
        chan<int> c(0);
        go([=] { c.send(me); });
        compute(1000);
        try {
          throw_from(3, me);
        } catch (const std::runtime_error& e) {
          if (e.what() != std::to_string(me)) return false;
        }
        return c.recv() == me;
      },
      0);
  stop = true;
  sender.join();
}

}  // namespace
}  // namespace gofer
