// Programs that crash. The first argument says how, the second one where and under which
// circumstances: "goroutine", "main_goroutine", "thread" or "main_thread", and then, separated by
// commas, what else is so.
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#undef NDEBUG  // assert() is tested
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "../support/wait_until.h"
#include "runtime/procs/current.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

bool asked(std::string_view option) {
  std::string_view all = scenario_argument;
  while (!all.empty()) {
    const std::size_t end = all.find(',');
    if (all.substr(0, end) == option) return true;
    all.remove_prefix(end == all.npos ? all.size() : end + 1);
  }
  return false;
}

[[noreturn]] void wait_for_the_end() {
  gofer::wait_group never;
  never.add(1);
  never.wait();
  std::abort();
}

// ---- how

int* volatile null_pointer = nullptr;
volatile int zero = 0;
volatile int sink;

[[gnu::noinline]] void store_to_null() {
  *null_pointer = 1;
  sink = 1;
}

[[gnu::noinline]] void call_null() {
  void (*volatile function)() = nullptr;
  function();
  sink = 1;
}

[[gnu::noinline]] void divide() { sink = 1000 / zero; }

[[gnu::noinline]] void no_instruction() {
  asm volatile("ud2");
  sink = 1;
}

[[gnu::noinline]] void beyond_end_of_file() {
  const int fd = memfd_create("empty", 0);
  const void* pages = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  sink = *static_cast<const volatile char*>(pages);
}

[[gnu::noinline]] void not_canonical() {
  sink = *reinterpret_cast<volatile int*>(std::uintptr_t{1} << 60);
}

[[gnu::noinline]] void aborts() {
  std::abort();
  sink = 1;
}

[[gnu::noinline]] void asserts() {
  assert(zero == 1);
  sink = 1;
}

// The allocator finds this out while it holds its lock.
[[gnu::noinline]] void corrupts_heap() {
  char* volatile block = static_cast<char*>(std::malloc(3000));
  char* volatile same = block;
  std::free(block);
  std::free(same);
  sink = 1;
}

[[gnu::noinline]] void smashes_stack_pointer() {
  asm volatile("movq $0x1234, %%rsp\n\tpushq %%rax" ::: "memory");
}

[[gnu::noinline]] void smashes_frames() {
  void** frame = static_cast<void**>(__builtin_frame_address(0));
  for (int i = 0; i < 40; ++i)
    frame[i] = reinterpret_cast<void*>(std::uintptr_t{0x4141414141414141});
  store_to_null();
}

[[gnu::noinline]] void inside_runtime() {
  const gofer::internal::Inside inside;
  store_to_null();
}

// The report of the crash reads the name.
[[gnu::noinline]] void broken_record() {
  gofer::internal::current_g()->name = reinterpret_cast<char*>(16);
  divide();
}

[[gnu::noinline]] void raises() {
  raise(SIGSEGV);
  sink = 1;
}

[[gnu::noinline]] int recurses(int n) {
  if (n == 0) {
    store_to_null();
    return 0;
  }
  return recurses(n - 1) + zero;
}

// ---- circumstances

void own_handler(int number, siginfo_t* info, void* context) {
  require(context != nullptr && info->si_signo == number, "a handler with all its arguments");
  (void)!write(STDOUT_FILENO, "own handler\n", 12);
  if (asked("returns")) return;
  _exit(9);
}

void install_handlers(int flags) {
  struct sigaction action {};
  action.sa_sigaction = own_handler;
  action.sa_flags = SA_SIGINFO | flags;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(number, &action, nullptr);
  }
}

void prepare() {
  if (asked("handler")) install_handlers(0);
  if (asked("handler_once")) install_handlers(static_cast<int>(SA_RESETHAND));
  if (asked("ignored")) {
    for (int number : {SIGSEGV, SIGFPE}) signal(number, SIG_IGN);
  }
}

template <class F>
int in_place(F crash) {
  prepare();
  gofer::run([] {});
  if (asked("late_handler")) install_handlers(0);
  if (asked("thousand")) {
    std::atomic<int> begun{0};
    for (int i = 0; i < 1000; ++i) {
      gofer::go([&begun] {
        ++begun;
        wait_for_the_end();
      });
    }
    require(wait_until([&] { return begun == 1000; }), "a thousand goroutines");
  }
  if (asked("thread")) {
    std::thread(crash).join();
  } else if (asked("main_thread")) {
    crash();
  } else if (asked("main_goroutine")) {
    gofer::run(crash);
  } else {
    gofer::go({.name = "the culprit"}, [crash] {
      std::printf("id=%lu\n", static_cast<unsigned long>(gofer::this_goroutine::id()));
      std::fflush(stdout);
      crash();
      say("went on");
      _exit(0);
    });
    wait_for_the_end();
  }
  say("went on");
  return 0;
}

template <void (*crash)()>
int place() {
  return in_place(crash);
}

// ---- other programs

int all_at_once() {
  prepare();
  static std::atomic<int> ready{0};
  for (int i = 0; i < 20; ++i) {
    gofer::go([i] {
      ++ready;
      require(wait_until([] { return ready == 20; }), "twenty goroutines");
      i % 2 == 0 ? store_to_null() : divide();
    });
  }
  wait_for_the_end();
}

struct Crashes {
  int armed = 0;
  ~Crashes() {
    if (armed != 0) store_to_null();
  }
};
thread_local Crashes at_end;

int thread_local_destructor() {
  gofer::run([] {});
  std::thread([] { at_end.armed = 1; }).join();
  return 0;
}

// A goroutine that ends while it is bound ends its thread.
int thread_local_destructor_of_m() {
  gofer::go([] {
    gofer::lock_os_thread();
    at_end.armed = 1;
  });
  wait_for_the_end();
}

int static_destructor() {
  static Crashes object;
  object.armed = 1;
  gofer::run([] {});
  return 0;
}

int sent_from_outside() {
  gofer::run([] {});
  const pid_t child = fork();
  if (child == 0) {
    kill(getppid(), SIGABRT);  // perhaps it is still in fork, with the allocator's locks
    _exit(0);
  }
  gofer::run([] { gofer::sleep_for(std::chrono::seconds(50)); });
  return 0;
}

int ends_of(pid_t child) {
  int status = 0;
  require(waitpid(child, &status, 0) == child, "a child to wait for");
  std::printf("child=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
  std::fflush(stdout);
  return 0;
}

int forked_child() {
  gofer::run([] {});
  const pid_t child = fork();
  if (child == 0) store_to_null();
  return ends_of(child);
}

// The parent's memory is used, and goes on to be used.
int vforked_child() {
  return gofer::run([] {
    const pid_t child = vfork();
    if (child == 0) store_to_null();
    ends_of(child);
    gofer::wait_group wg;
    for (int i = 0; i < 10; ++i) wg.go([] { gofer::yield(); });
    wg.wait();
    say("went on");
    return 0;
  });
}

// A program that handles such a signal on purpose, again and again.
int on_purpose() {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    mprotect(info->si_addr, 4096, PROT_READ | PROT_WRITE);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  static char* const page =
      static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int i = 0; i < 100; ++i) {
    gofer::run([] {
      mprotect(page, 4096, PROT_NONE);
      *static_cast<volatile char*>(page) = 1;
    });
  }
  say("completed");
  return 0;
}

int recursion() {
  return in_place([] { recurses(1000); });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"store_to_null", place<store_to_null>},
                       {"call_null", place<call_null>},
                       {"divide", place<divide>},
                       {"no_instruction", place<no_instruction>},
                       {"beyond_end_of_file", place<beyond_end_of_file>},
                       {"not_canonical", place<not_canonical>},
                       {"aborts", place<aborts>},
                       {"asserts", place<asserts>},
                       {"corrupts_heap", place<corrupts_heap>},
                       {"smashes_stack_pointer", place<smashes_stack_pointer>},
                       {"smashes_frames", place<smashes_frames>},
                       {"inside_runtime", place<inside_runtime>},
                       {"broken_record", place<broken_record>},
                       {"raises", place<raises>},
                       {"recursion", recursion},
                       {"all_at_once", all_at_once},
                       {"thread_local_destructor", thread_local_destructor},
                       {"thread_local_destructor_of_m", thread_local_destructor_of_m},
                       {"static_destructor", static_destructor},
                       {"sent_from_outside", sent_from_outside},
                       {"forked_child", forked_child},
                       {"vforked_child", vforked_child},
                       {"on_purpose", on_purpose}});
}
