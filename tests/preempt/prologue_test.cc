// Pauses at function prologues seen from a program that is not built for them itself: shared
// libraries, plugins and foreign threads. What happens to calls is in prologue/calls.cc.
// gofer-test: once
#include <dlfcn.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "prologue/fire.h"
#include "runtime/watch/prologue.h"
#include "support/child.h"

extern "C" {
int linked_fib(int n);
double linked_sum(int n, ...);
int linked_apply(int (*function)(int), int n);
int plain_fib(int n);
}

namespace gofer {
namespace {

using internal::prologue_guard;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::Fire;
using test::pauses;
using test::Spoiler;

class Plugin {
 public:
  Plugin() : handle_(dlopen(GOFER_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL)) {}
  ~Plugin() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  template <class F>
  F* get(const char* name) {
    return handle_ == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

int square(int n) { return n * n; }

TEST(Prologue, TheGuardIsTheThreadsOwn) {
  uintptr_t* mine = prologue_guard();
  uintptr_t* others = nullptr;
  std::thread([&others] { others = prologue_guard(); }).join();
  EXPECT_NE(mine, others);
  EXPECT_EQ(mine, prologue_guard());
  internal::raise_prologue_guard(mine);
  uintptr_t value = 0;
  asm volatile("movq %%fs:0x70, %0" : "=r"(value));
  EXPECT_EQ(value, ~uintptr_t{0});
  *mine = 0;
}

TEST(Prologue, CodeNotBuiltForItDoesNotPause) {
  Spoiler spoiler;
  GOFER_RAISE();
  EXPECT_EQ(plain_fib(10), 55);
  EXPECT_EQ(pauses(), 0U);
  *prologue_guard() = 0;
}

TEST(Prologue, ASharedLibraryPauses) {
  Spoiler spoiler;
  GOFER_RAISE();
  EXPECT_EQ(linked_fib(10), 55);
  EXPECT_EQ(pauses(), 1U);
  GOFER_RAISE();
  EXPECT_EQ(linked_sum(8, 1, .5, 2, .5, 3, .5, 4, .5, 5, .5, 6, .5, 7, .5, 8, .5), 40);
  EXPECT_EQ(pauses(), 2U);
  GOFER_RAISE();
  EXPECT_EQ(linked_apply(square, 9), 82);
  EXPECT_EQ(pauses(), 3U);
}

TEST(Prologue, APluginPauses) {
  Spoiler spoiler;
  Plugin plugin;
  auto* fib = plugin.get<int(int)>("plugin_fib");
  auto* apply = plugin.get<int(int (*)(int), int)>("plugin_apply");
  ASSERT_NE(fib, nullptr) << dlerror();
  ASSERT_NE(apply, nullptr) << dlerror();
  GOFER_RAISE();
  EXPECT_EQ(fib(10), 55);
  EXPECT_EQ(pauses(), 1U);
  GOFER_RAISE();
  EXPECT_EQ(apply(linked_fib, 10), 56);
  EXPECT_EQ(pauses(), 2U);
}

// Goroutines and threads, each under fire of its own.
TEST(Prologue, ManyAtOnce) {
  Spoiler spoiler;
  const auto work = [] {
    const auto end = steady_clock::now() + seconds(20);
    const uint64_t goal = pauses() + 500;
    Fire fire;
    while (pauses() < goal && steady_clock::now() < end) ASSERT_EQ(linked_fib(15), 610);
    EXPECT_GE(pauses(), goal);
  };
  std::thread thread(work);
  run([&work] {
    wait_group wg;
    for (int i = 0; i < 4; ++i) wg.go(work);
    wg.wait();
  });
  thread.join();
}

// One processor, no signals, and a goroutine that never ends: its calls let the others in.
TEST(Prologue, AGoroutineThatCallsFunctionsForEverIsPreempted) {
  const test::ChildResult child =
      test::run_child("prologue_hog", {"calls"}, {"GOMAXPROCS=1", "GOFER_DEBUG=asyncpreemptoff=1"});
  EXPECT_TRUE(child.exited_with(0)) << child;
  EXPECT_TRUE(child.out_has("i got scheduled")) << child;
}

TEST(Prologue, AGoroutineThatCallsNothingIsNot) {
  const test::ChildResult child =
      test::run_child("prologue_hog", {"calls nothing"},
                      {"GOMAXPROCS=1", "GOFER_DEBUG=asyncpreemptoff=1"}, std::chrono::seconds(2));
  EXPECT_TRUE(child.timed_out) << child;
  EXPECT_FALSE(child.out_has("i got scheduled")) << child;
}

TEST(Prologue, AProgramWithoutTheRuntimeGoesOn) {
  const test::ChildResult child = test::run_child("prologue_alone");
  EXPECT_TRUE(child.exited_with(0)) << child;
  EXPECT_TRUE(child.out_has("fib 55, guard 0")) << child;
}

}  // namespace
}  // namespace gofer
