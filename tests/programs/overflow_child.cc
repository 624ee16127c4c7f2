// Programs that overflow a goroutine's stack, come near to it, or fault in other ways.
#include <gofer/gofer.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

[[noreturn]] void wait_for_the_end() {
  gofer::wait_group never;
  never.add(1);
  never.wait();
  std::abort();
}

// Goes down until `bytes` of stack are used.
[[gnu::noinline]] int go_down(std::uintptr_t from, std::size_t bytes) {
  volatile char frame[200];
  frame[0] = 1;
  if (from - reinterpret_cast<std::uintptr_t>(&frame[0]) >= bytes) return frame[0];
  return go_down(from, bytes) + frame[0];
}

[[gnu::noinline]] int use_stack(std::size_t bytes) {
  const int n = go_down(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), bytes);
  asm volatile("");  // no tail call
  return n;
}

constexpr std::size_t without_end = std::size_t{1} << 40;

// A frame larger than the guard.
[[gnu::noinline]] int large_frames(int n) {
  volatile char frame[200 * 1024];
  frame[0] = static_cast<char>(n);
  frame[sizeof frame - 1] = 1;
  if (n > 1'000'000) return 0;
  return large_frames(n + 1) + frame[0];
}

// A frame as a library that was built without -fstack-clash-protection has it: in one step, and the
// first thing that it touches is its lowest byte.
extern "C" void gofer_test_unprobed_frame(std::size_t bytes);
asm(R"(
  .text
  .p2align 4
  .type gofer_test_unprobed_frame, @function
gofer_test_unprobed_frame:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq %rdi, %rsp
  movb $1, (%rsp)
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size gofer_test_unprobed_frame, . - gofer_test_unprobed_frame
)");

// call(arg), with as many untouched bytes between the two frames.
extern "C" void gofer_test_call_below(void (*call)(void*), void* arg, std::size_t bytes);
asm(R"(
  .text
  .p2align 4
  .type gofer_test_call_below, @function
gofer_test_call_below:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq %rdx, %rsp
  andq $-16, %rsp
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size gofer_test_call_below, . - gofer_test_call_below
)");

// Calls f that far below, and writes nothing in between.
template <class F>
[[gnu::noinline]] void call_below(std::size_t bytes, F f) {
  gofer_test_call_below([](void* arg) { (*static_cast<F*>(arg))(); }, &f, bytes);
}

void say_id() {
  std::printf("id=%lu\n", static_cast<unsigned long>(gofer::this_goroutine::id()));
  std::fflush(stdout);
}

int recursion() {
  gofer::go([] {
    say_id();
    use_stack(without_end);
  });
  wait_for_the_end();
}

int sized() {
  gofer::go({.name = "small", .stack_size = 200 * 1024}, [] {
    say_id();
    use_stack(without_end);
  });
  wait_for_the_end();
}

int main_goroutine() {
  gofer::run([] { return use_stack(without_end); });
  return 0;
}

int locked() {
  gofer::go([] {
    gofer::lock_os_thread();
    gofer::yield();
    use_stack(without_end);
  });
  wait_for_the_end();
}

int large() {
  gofer::go([] { large_frames(0); });
  wait_for_the_end();
}

// The stacks around are in use: what is not caught would be lost in one of them.
int unprobed() {
  const std::size_t bytes = std::strtoul(scenario_argument, nullptr, 10);
  gofer::wait_group gate, parked;
  gate.add(1);
  constexpr int count = 100;
  parked.add(count);
  for (int i = 0; i < count; ++i) {
    gofer::go([&] {
      parked.done();
      gate.wait();
      say_id();
      gofer_test_unprobed_frame(bytes);
      say("went on");
      std::_Exit(0);
    });
  }
  parked.wait();
  gate.done();
  wait_for_the_end();
}

// With guard=none (the test sets that): on a stack that is not the lowest one, whose guard a
// hundred neighbours share. An overflow that nothing finds ends as a deadlock.
template <class F>
int on_a_higher_stack(F f) {
  gofer::run([&] {
    gofer::wait_group group, gate;
    gate.add(1);
    for (int i = 0; i < 20; ++i) group.go([&] { gate.wait(); });
    gofer::yield();
    gofer::go([&] {
      say_id();
      f();
    });
    wait_for_the_end();
  });
  return 0;
}

int below_and_back() {
  return on_a_higher_stack([] {
    use_stack(1000 * 1024);
    gofer::sleep_for(std::chrono::milliseconds(1));
  });
}

// Nothing is written but the lowest frame, which is the switch's.
int left_from_below() {
  return on_a_higher_stack(
      [] { call_below(1000 * 1024, [] { gofer::sleep_for(std::chrono::milliseconds(1)); }); });
}

int below_at_the_end() {
  return on_a_higher_stack([] { use_stack(1000 * 1024); });
}

// The goroutine that it starts runs next, on a stack that it could take over.
int below_before_another() {
  return on_a_higher_stack([] {
    use_stack(1000 * 1024);
    gofer::go(wait_for_the_end);
  });
}

int recursion_through_neighbours() {
  return on_a_higher_stack([] { use_stack(without_end); });
}

// Not the first goroutine on that stack, and after parking: the one to blame is the current one.
int after_others() {
  gofer::run([] {
    gofer::wait_group wg;
    for (int i = 0; i < 200; ++i) {
      wg.go([] {
        use_stack(100 * 1024);
        gofer::yield();
      });
    }
    wg.wait();
    gofer::go([] {
      for (int i = 0; i < 10; ++i) gofer::yield();
      say_id();
      use_stack(without_end);
    });
    gofer::wait_group never;
    never.add(1);
    never.wait();
  });
  return 0;
}

int all_at_once() {
  static std::atomic<int> ready{0};
  for (int i = 0; i < 20; ++i) {
    gofer::go([] {
      ++ready;
      require(wait_until([] { return ready == 20; }), "twenty goroutines");
      use_stack(without_end);
    });
  }
  wait_for_the_end();
}

// The overflow happens in the deepest thing that is called: malloc (with its lock), the runtime
// (perhaps with one of its locks), the unwinder.
template <class Call>
[[gnu::noinline]] int go_down_calling(Call call, int n) {
  volatile char frame[40];
  frame[0] = 1;
  call();
  if (n > 1'000'000) return 0;
  return go_down_calling(call, n + 1) + frame[0];
}

int in_malloc() {
  gofer::go([] {
    go_down_calling(
        [] {
          void* volatile block = std::malloc(5000);
          std::free(block);
          block = std::realloc(std::malloc(50), 70'000);
          std::free(block);
        },
        0);
  });
  wait_for_the_end();
}

int in_runtime() {
  gofer::go([] {
    go_down_calling(
        [] {
          gofer::wait_group wg;
          wg.go([] {});
          wg.wait();
        },
        0);
  });
  wait_for_the_end();
}

int in_throw() {
  gofer::go([] {
    go_down_calling(
        [] {
          try {
            throw 1;
          } catch (int) {
          }
        },
        0);
  });
  wait_for_the_end();
}

int handler_of_abort() {
  signal(SIGABRT, [](int) { _exit(33); });
  return recursion();
}

// What a goroutine is promised can be used, twice on the same stack.
int nearly() {
  const std::size_t size = std::strtoul(scenario_argument, nullptr, 10);
  for (int i = 0; i < 2; ++i) {
    gofer::wait_group wg;
    wg.add(1);
    gofer::go({.stack_size = size}, [&] {
      use_stack(size * 95 / 100);
      wg.done();
    });
    wg.wait();
  }
  say("completed");
  return 0;
}

int nearly_default() {
  gofer::wait_group wg;
  const std::size_t size = std::strtoul(scenario_argument, nullptr, 10);
  wg.go([=] { use_stack(size * 95 / 100); });
  wg.wait();
  say("completed");
  return 0;
}

// ---- other faults

int* volatile null_pointer = nullptr;

// UBSan would see it coming.
__attribute__((no_sanitize("undefined"))) void store_to_null() { *null_pointer = 1; }

void start_runtime() {
  gofer::run([] {});
}

int null_in_goroutine() {
  gofer::go(store_to_null);
  wait_for_the_end();
}

int null_in_thread() {
  start_runtime();
  store_to_null();
  return 0;
}

int raised_in_goroutine() {
  gofer::run([] { raise(SIGSEGV); });
  say("went on");
  return 0;
}

int raised_in_thread() {
  start_runtime();
  raise(SIGSEGV);
  say("went on");
  return 0;
}

[[gnu::noinline]] int overflow_thread() { return use_stack(without_end); }

int thread_overflow() {
  start_runtime();
  std::thread([] { overflow_thread(); }).join();
  return 0;
}

void plain_handler(int) {
  (void)!write(STDOUT_FILENO, "own handler\n", 12);
  _exit(9);
}

void info_handler(int, siginfo_t* info, void* context) {
  const bool right = info->si_addr == nullptr && context != nullptr;
  (void)!write(STDOUT_FILENO, right ? "own handler\n" : "wrong\n", right ? 12 : 6);
  _exit(9);
}

void install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

int plain_handler_goroutine() {
  signal(SIGSEGV, plain_handler);
  return null_in_goroutine();
}

int info_handler_goroutine() {
  install(info_handler);
  return null_in_goroutine();
}

int info_handler_thread() {
  install(info_handler);
  return null_in_thread();
}

// An overflow is ours to report even if the program has a handler.
int own_handler_overflow() {
  install(info_handler);
  return recursion();
}

// Programs that try an access and come back by a jump.
thread_local sigjmp_buf before_fault;

[[gnu::noinline]] bool faults() {
  if (sigsetjmp(before_fault, 1) != 0) return true;
  store_to_null();
  return false;
}

int jumping_handler() {
  install([](int, siginfo_t*, void*) { siglongjmp(before_fault, 1); });
  gofer::wait_group wg;
  std::atomic<int> faulted{0};
  for (int i = 0; i < 100; ++i) {
    wg.go([&] {
      for (int j = 0; j < 3; ++j) {
        if (faults()) ++faulted;
        gofer::yield();
      }
    });
  }
  wg.wait();
  require(faulted == 300, "every fault came to the handler");
  say("completed");
  return 0;
}

// Programs that let pages fault in: the handler repairs the access and returns.
char* lazy_page;

void repair(int, siginfo_t* info, void*) {
  if (info->si_addr != lazy_page) _exit(97);
  mprotect(lazy_page, 4096, PROT_READ | PROT_WRITE);
}

int repairing_handler() {
  install(repair);
  lazy_page =
      static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  gofer::wait_group wg;
  for (int i = 0; i < 100; ++i) {
    wg.add(1);
    gofer::go([&] {
      mprotect(lazy_page, 4096, PROT_NONE);
      *static_cast<volatile char*>(lazy_page) = 1;
      wg.done();
    });
    wg.wait();
  }
  mprotect(lazy_page, 4096, PROT_NONE);
  *static_cast<volatile char*>(lazy_page) = 1;
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"recursion", recursion},
                       {"sized", sized},
                       {"main_goroutine", main_goroutine},
                       {"locked", locked},
                       {"large", large},
                       {"unprobed", unprobed},
                       {"below_and_back", below_and_back},
                       {"left_from_below", left_from_below},
                       {"below_at_the_end", below_at_the_end},
                       {"below_before_another", below_before_another},
                       {"recursion_through_neighbours", recursion_through_neighbours},
                       {"after_others", after_others},
                       {"all_at_once", all_at_once},
                       {"in_malloc", in_malloc},
                       {"in_runtime", in_runtime},
                       {"in_throw", in_throw},
                       {"handler_of_abort", handler_of_abort},
                       {"nearly", nearly},
                       {"nearly_default", nearly_default},
                       {"null_in_goroutine", null_in_goroutine},
                       {"null_in_thread", null_in_thread},
                       {"raised_in_goroutine", raised_in_goroutine},
                       {"raised_in_thread", raised_in_thread},
                       {"thread_overflow", thread_overflow},
                       {"plain_handler_goroutine", plain_handler_goroutine},
                       {"info_handler_goroutine", info_handler_goroutine},
                       {"info_handler_thread", info_handler_thread},
                       {"own_handler_overflow", own_handler_overflow},
                       {"jumping_handler", jumping_handler},
                       {"repairing_handler", repairing_handler}});
}
