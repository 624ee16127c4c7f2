// gofer-test: once
#include "debug/traceback.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

// An entry to another stack as the runtime's is: its CFI says that nobody called it.
extern "C" void test_trampoline(void (*entry)(), void* stack_top);
extern "C" const char test_trampoline_end[];
asm(R"(
  .pushsection .text
  .type test_trampoline, @function
test_trampoline:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rsi, %rsp
  .cfi_remember_state
  .cfi_undefined %rip
  call *%rdi
  .cfi_restore_state
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size test_trampoline, . - test_trampoline
test_trampoline_end:
  .popsection
)");

namespace gofer::internal {
// Stands for the library's inside.
template <class F>
[[gnu::noinline]] void call_from_inside(F f) {
  f();
  asm volatile("");  // no tail call
}
}  // namespace gofer::internal

namespace {

using namespace gofer::internal;

class Stack {
 public:
  Stack()
      : base_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Stack() { munmap(base_, size); }
  void* base() const { return base_; }
  void* top() const { return static_cast<char*>(base_) + size; }
  static constexpr size_t size = 256 * 1024;

 private:
  void* base_;
};

using Pcs = std::vector<uintptr_t>;

std::string printed(const Pcs& pcs, const FrameOptions& options = {}) {
  const int fd = memfd_create("trace", 0);
  print_frames(fd, pcs, options);
  std::string text(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  close(fd);
  return text;
}

// The place of the text after `from`, or a failure.
size_t find(const std::string& trace, const std::string& text, size_t from = 0) {
  const size_t at = trace.find(text, from);
  EXPECT_NE(at, std::string::npos) << "no '" << text << "' after " << from << " in\n" << trace;
  return at == std::string::npos ? 0 : at;
}

// TSan reports every malloc in a signal handler, at length.
#if defined(__SANITIZE_THREAD__)
constexpr bool have_tsan = true;
#elif defined(__has_feature)
constexpr bool have_tsan = __has_feature(thread_sanitizer);
#else
constexpr bool have_tsan = false;
#endif

bool debug_info_is_there() {
#ifdef GOFER_HAVE_LIBDW
  return printed({reinterpret_cast<uintptr_t>(&debug_info_is_there)}).find(".cc:") !=
         std::string::npos;
#else
  return false;
#endif
}

#define SKIP_WITHOUT_DEBUG_INFO() \
  if (!debug_info_is_there()) GTEST_SKIP() << "built without libdw or without debug information"

std::string line(int number) { return "traceback_test.cc:" + std::to_string(number); }

// ---- a stopped stack ----

ucontext_t outside;
ucontext_t inside;
int lines[3];
volatile int depth;  // writes to it keep calls from being tail calls

[[gnu::noinline]] void third() {
  lines[2] = __LINE__ + 1;
  swapcontext(&inside, &outside);
  depth = 3;
}

[[gnu::noinline]] void second() {
  lines[1] = __LINE__ + 1;
  third();
  depth = 2;
}

[[gnu::noinline]] void first() {
  lines[0] = __LINE__ + 1;
  second();
  depth = 1;
}

class StoppedStack : public testing::Test {
 protected:
  void SetUp() override {
    getcontext(&inside);
    inside.uc_stack = {stack_.base(), 0, Stack::size};
    inside.uc_link = &outside;
    makecontext(&inside, first, 0);
    swapcontext(&outside, &inside);
  }
  void TearDown() override { swapcontext(&outside, &inside); }

  Pcs unwound(size_t room) {
    Pcs pcs(room);
    pcs.resize(unwind(arch::interrupted_registers(&inside), pcs));
    return pcs;
  }

  Stack stack_;
};

TEST_F(StoppedStack, IsUnwoundToItsEnd) {
  const Pcs pcs = unwound(64);
  ASSERT_GE(pcs.size(), 3u);
  EXPECT_LE(pcs.size(), 5u);  // libc's entry function, and a sanitizer's swapcontext
  arch::Registers registers = arch::interrupted_registers(&inside);
  EXPECT_EQ(pcs[0], arch::pc_of(registers) - 1);  // in the call, not after it
}

TEST_F(StoppedStack, ShowsItsFunctionsAndLines) {
  SKIP_WITHOUT_DEBUG_INFO();
  const std::string trace = printed(unwound(64));
  size_t at = 0;
  const char* names[] = {"first(...)\n\t", "second(...)\n\t", "third(...)\n\t"};
  for (int i : {2, 1, 0}) {
    at = find(trace, names[i], at);
    at = find(trace, line(lines[i]) + " +0x", at);
  }
}

TEST_F(StoppedStack, IsCutWhereTheRoomEnds) {
  EXPECT_EQ(unwound(2).size(), 2u);
  EXPECT_EQ(unwound(1).size(), 1u);
  EXPECT_EQ(unwound(0).size(), 0u);
}

TEST_F(StoppedStack, CanBeUnwoundTwice) { EXPECT_EQ(unwound(64), unwound(64)); }

TEST_F(StoppedStack, IsPrintedWithoutMallocAsModulesAndOffsets) {
  const std::string trace = printed(unwound(64), {.no_malloc = true});
  find(trace, "(...)\n\t");
  find(trace, "+0x");
}

// ---- the running stack ----

Pcs here_pcs;
int here_line;

[[gnu::noinline]] void record_here() {
  here_pcs.resize(64);
  here_line = __LINE__ + 1;
  here_pcs.resize(unwind_here(here_pcs, 0));
}

[[gnu::noinline]] void caller_of_record() {
  record_here();
  depth = 1;
}

TEST(RunningStack, EndsAtAFrameWhoseReturnAddressIsUndefined) {
  Stack stack;
  test_trampoline(caller_of_record, stack.top());
  ASSERT_EQ(here_pcs.size(), 3u);
  EXPECT_GT(here_pcs[2], reinterpret_cast<uintptr_t>(&test_trampoline));
  EXPECT_LT(here_pcs[2], reinterpret_cast<uintptr_t>(test_trampoline_end));
}

TEST(RunningStack, BeginsWithTheCaller) {
  SKIP_WITHOUT_DEBUG_INFO();
  Stack stack;
  test_trampoline(caller_of_record, stack.top());
  const std::string trace = printed(here_pcs);
  EXPECT_EQ(trace.find("record_here(...)\n"), 0u) << trace;
  find(trace, "caller_of_record(...)\n", find(trace, line(here_line)));
}

[[gnu::noinline]] Pcs pcs_of_my_caller() {
  Pcs pcs(64);
  pcs.resize(unwind_here(pcs, 1));
  return pcs;
}

TEST(RunningStack, LeavesOutAsManyFramesAsItIsTold) {
  SKIP_WITHOUT_DEBUG_INFO();
  const int expected = __LINE__ + 1;
  const std::string trace = printed(pcs_of_my_caller());
  EXPECT_LT(find(trace, line(expected)), trace.find('\n', trace.find('\n') + 1)) << trace;
}

// ---- what is printed ----

int inlined_line;

[[gnu::always_inline]] inline Pcs recorded_inline() {
  inlined_line = __LINE__ + 1;
  return pcs_of_my_caller();
}

int caller_of_inlined_line;

[[gnu::noinline]] Pcs caller_of_inlined() {
  caller_of_inlined_line = __LINE__ + 1;
  Pcs pcs = recorded_inline();
  depth = 1;
  return pcs;
}

TEST(PrintedFrames, ShowInlinedFunctionsWithoutOffset) {
  SKIP_WITHOUT_DEBUG_INFO();
  const std::string trace = printed(caller_of_inlined());
  EXPECT_EQ(trace.find("recorded_inline(...)\n\t"), 0u) << trace;
  size_t at = find(trace, line(inlined_line) + "\n");
  at = find(trace, "caller_of_inlined(...)\n\t", at);
  find(trace, line(caller_of_inlined_line) + " +0x", at);
}

TEST(PrintedFrames, LeaveOutTheLibrarysInsideWhenTold) {
  SKIP_WITHOUT_DEBUG_INFO();
  Pcs pcs;
  call_from_inside([&] { pcs = pcs_of_my_caller(); });
  EXPECT_EQ(printed(pcs).find("gofer::internal"), std::string::npos);
  find(printed(pcs, {.hide_internal = false}), "gofer::internal::call_from_inside<");
}

TEST(PrintedFrames, NameLambdas) {
  SKIP_WITHOUT_DEBUG_INFO();
  Pcs pcs;
  call_from_inside([&] { pcs = pcs_of_my_caller(); });
  find(printed(pcs), "{lambda");
}

TEST(PrintedFrames, ShowInternalOnesIfThereIsNothingElse) {
  SKIP_WITHOUT_DEBUG_INFO();
  const auto inside_pc = reinterpret_cast<uintptr_t>(&call_from_inside<void (*)()>);
  find(printed({inside_pc}), "gofer::internal::call_from_inside<");
}

TEST(PrintedFrames, SurviveAnUnknownAddress) {
  EXPECT_EQ(printed({0x1234}), "?(...)\n\t0x1234\n");
  EXPECT_EQ(printed({0x1234}, {.no_malloc = true}), "?(...)\n\t0x1234\n");
  EXPECT_EQ(printed({}), "");
}

TEST(PrintedFrames, ShowModuleAndOffsetWhereThereAreNoLines) {
  const auto in_libc = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "getppid"));
  const std::string trace = printed({in_libc});
  find(trace, "getppid(...)\n\t");
}

TEST(PrintedFrames, LeaveTheSignalMaskAsItWas) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  printed({0x1234});
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST(PrintedFrames, AreTheSameFromManyThreads) {
  const Pcs pcs = caller_of_inlined();
  const std::string expected = printed(pcs);
  std::array<std::string, 4> traces;
  std::vector<std::thread> threads;
  for (std::string& trace : traces) threads.emplace_back([&] { trace = printed(pcs); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& trace : traces) EXPECT_EQ(trace, expected);
}

// ---- creators ----

uintptr_t creation_pc;

[[gnu::noinline]] void note_creation() {
  creation_pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
}

int creation_line;

[[gnu::noinline]] void creates() {
  creation_line = __LINE__ + 1;
  note_creation();
  depth = 1;
}

TEST(Creator, IsNamedWithItsLine) {
  SKIP_WITHOUT_DEBUG_INFO();
  creates();
  EXPECT_EQ(describe_pc(creation_pc), "creates");
  testing::internal::CaptureStderr();
  print_creator(STDERR_FILENO, creation_pc, 7);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("created by creates in goroutine 7\n\t"), 0u) << text;
  find(text, line(creation_line) + " +0x");
}

TEST(Creator, MayBeUnknown) { EXPECT_EQ(describe_pc(0x1234), "?"); }

// ---- signals ----

Pcs signal_pcs;

void on_signal(int, siginfo_t*, void* context) {
  signal_pcs.resize(unwind_signal(context, signal_pcs));
}

void on_fault(int, siginfo_t*, void* context) {
  on_signal(0, nullptr, context);
  print_frames(STDERR_FILENO, signal_pcs);
  _exit(3);
}

// A signal stack of the size that the runtime uses for its threads.
void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  static char alternate[64 * 1024];
  stack_t stack = {alternate, 0, sizeof alternate};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
  signal_pcs.resize(64);
}

[[gnu::noinline]] void interrupted() {
  raise(SIGUSR1);
  depth = 1;
}

TEST(Signal, ShowsTheCodeThatItInterrupted) {
  SKIP_WITHOUT_DEBUG_INFO();
  handle(SIGUSR1, on_signal);
  interrupted();
  signal(SIGUSR1, SIG_DFL);
  find(printed(signal_pcs), "interrupted(...)\n");
}

TEST(Signal, TellsWhetherItInterruptedMalloc) {
  const auto at = [](const char* name) {
    return reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, name)) + 1;
  };
  EXPECT_FALSE(is_in_malloc(Pcs{at("abort"), at("vfork"), 0x1234}));
  for (const char* name : {"malloc", "free", "calloc", "realloc", "posix_memalign", "fork"}) {
    EXPECT_TRUE(is_in_malloc(Pcs{at("abort"), at(name)})) << name;
  }
}

void (*volatile nowhere)() = nullptr;
int* volatile null_int = nullptr;

[[gnu::noinline]] void call_through_null() {
  handle(SIGSEGV, on_fault);
  nowhere();
  depth = 1;
}

[[gnu::noinline]] void call_into_nothing() {
  handle(SIGSEGV, on_fault);
  nowhere = reinterpret_cast<void (*)()>(0x1234);
  nowhere();
  depth = 1;
}

// UBSan would find the fault before it happens.
[[gnu::noinline]] __attribute__((no_sanitize("undefined"))) void write_through_null() {
  handle(SIGSEGV, on_fault);
  *null_int = 1;
  depth = 1;
}

TEST(SignalDeathTest, IsPrintedOnTheSignalStack) {
  if (have_tsan) GTEST_SKIP();
  SKIP_WITHOUT_DEBUG_INFO();
  EXPECT_EXIT(write_through_null(), testing::ExitedWithCode(3), "write_through_null\\(...\\)");
}

TEST(SignalDeathTest, ShowsWhoCalledThroughABadPointer) {
  if (have_tsan) GTEST_SKIP();
  SKIP_WITHOUT_DEBUG_INFO();
  EXPECT_EXIT(call_through_null(), testing::ExitedWithCode(3), "call_through_null\\(...\\)");
  EXPECT_EXIT(call_into_nothing(), testing::ExitedWithCode(3), "call_into_nothing\\(...\\)");
}

}  // namespace
