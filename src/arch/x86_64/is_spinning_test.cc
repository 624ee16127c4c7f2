// gofer-test: once
// What a signal's handler can tell of the code that it interrupts.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "arch/arch.h"
#include "runtime/base/sanitizer.h"

namespace gofer::internal {
namespace {

// A page of code between two that cannot be read.
class CodePage {
 public:
  CodePage() {
    void* all = mmap(nullptr, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(all, MAP_FAILED);
    page_ = static_cast<std::uint8_t*>(all) + size;
    EXPECT_EQ(mprotect(page_, size, PROT_READ | PROT_WRITE), 0);
    std::fill_n(page_, size, std::uint8_t{0x48});
  }
  ~CodePage() { munmap(page_ - size, 3 * size); }
  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;

  void put(std::size_t at, std::vector<std::uint8_t> code) {
    std::copy(code.begin(), code.end(), page_ + at);
  }
  // A signal has interrupted the thread at that byte of the page.
  bool spins_at(std::size_t at) const {
    ucontext_t context{};
    context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(page_ + at);
    return arch::is_spinning(&context);
  }
  static constexpr std::size_t size = 4096;

 private:
  std::uint8_t* page_ = nullptr;
};

const std::vector<std::uint8_t> pause_instruction = {0xf3, 0x90};

TEST(IsSpinning, SeesThePauseOfALoopBeforeAndBehindTheProgramCounter) {
  CodePage page;
  page.put(1000, pause_instruction);
  EXPECT_TRUE(page.spins_at(1000));
  EXPECT_TRUE(page.spins_at(980));
  EXPECT_TRUE(page.spins_at(1020));
}

TEST(IsSpinning, IsFalseFarFromAPause) {
  CodePage page;
  page.put(1000, pause_instruction);
  EXPECT_FALSE(page.spins_at(900));
  EXPECT_FALSE(page.spins_at(1100));
}

TEST(IsSpinning, DoesNotReadThePagesAround) {
  CodePage page;
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, CodePage::size - 1}) {
    EXPECT_FALSE(page.spins_at(at)) << at;
  }
  page.put(0, pause_instruction);
  page.put(CodePage::size - 2, pause_instruction);
  EXPECT_TRUE(page.spins_at(0));
  EXPECT_TRUE(page.spins_at(CodePage::size - 1));
}

TEST(IsSpinning, DoesNotTakeOtherInstructionsForAPause) {
  CodePage page;
  page.put(100, {0x90, 0x90, 0xf3, 0x48, 0x0f, 0xb8});  // nop, nop, popcnt
  EXPECT_FALSE(page.spins_at(102));
}

// ---------------------------------------------------------------- code as a compiler makes it

volatile sig_atomic_t seen = -1;

void look(int, siginfo_t*, void* context) { seen = arch::is_spinning(context) ? 1 : 0; }

// What a handler says of code that is interrupted by a signal of its own thread.
class Interrupted : public testing::Test {
 protected:
  void SetUp() override {
    if (tsan_enabled) GTEST_SKIP() << "TSan delays a signal until the thread calls libc";
    struct sigaction action {};
    action.sa_sigaction = look;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGALRM, &action, &before_), 0);
    seen = -1;
    ualarm(2000, 0);
  }
  void TearDown() override { sigaction(SIGALRM, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

TEST_F(Interrupted, InALoopThatWaits) {
  while (seen == -1) asm volatile("pause");
  EXPECT_EQ(seen, 1);
}

TEST_F(Interrupted, InALoopThatComputes) {
  std::uint64_t x = 1;
  while (seen == -1) {
    x = x * 6364136223846793005U + 1;
    asm volatile("" : "+r"(x));
  }
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace gofer::internal
