// What the environment and the system give, or refuse: settings, CPUs, threads, memory. Each in a
// child process.
#include <gtest/gtest.h>

#include <string>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

// ---- Settings

ChildResult environment(const std::vector<std::string>& variables,
                        const std::string& scenario = "print") {
  return run_child("environment_child", {scenario}, variables);
}

// The program runs as if the setting were not there.
void expect_as_default(const ChildResult& r, const std::string& what) {
  static const std::string usual = environment({"GOMAXPROCS", "GOFER_DEBUG"}).out;
  EXPECT_TRUE(r.exited_with(0)) << what << ": " << r;
  EXPECT_EQ(r.out, usual) << what << ": " << r;
}

void expect_named(const ChildResult& r, const std::string& name) {
  EXPECT_EQ(count_of(r.err, "\n"), 1) << name << ": " << r;
  EXPECT_EQ(r.err.find("gofer: "), 0u) << name << ": " << r;
  EXPECT_EQ(count_of(r.err, "gofer: "), 1) << name << ": " << r;
  EXPECT_TRUE(r.err_has(name)) << name << ": " << r;
}

TEST(Gomaxprocs, IsTakenFromTheEnvironment) {
  for (const char* n : {"1", "3", "100", "4096"}) {
    const ChildResult r = environment({std::string("GOMAXPROCS=") + n});
    EXPECT_TRUE(r.exited_with(0)) << n << ": " << r;
    EXPECT_EQ(value_of(r, "gomaxprocs"), n) << r;
    EXPECT_EQ(value_of(r, "ran"), "100") << r;
    EXPECT_EQ(r.err, "") << n << ": " << r;
  }
}

TEST(Gomaxprocs, ThatIsNoPositiveNumberIsNamedAndIgnored) {
  for (const char* value : {"0", "-1", "abc", "3x", " 3", "0x10", "3.5"}) {
    const ChildResult r = environment({std::string("GOMAXPROCS=") + value, "GOFER_DEBUG"});
    expect_as_default(r, value);
    expect_named(r, std::string("GOMAXPROCS=") + value);
  }
}

TEST(Gomaxprocs, ThatIsTooLargeIsNamedAndCut) {
  for (const char* value : {"4097", "99999999999999999999999"}) {
    const ChildResult r = environment({std::string("GOMAXPROCS=") + value});
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_EQ(value_of(r, "gomaxprocs"), "4096") << r;
    expect_named(r, std::string("GOMAXPROCS=") + value);
  }
}

TEST(Gomaxprocs, IsOneWhenTheProcessMayUseOneCpu) {
  const ChildResult r = environment({"GOMAXPROCS"}, "one_cpu");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(value_of(r, "gomaxprocs"), "1") << r;
  EXPECT_EQ(value_of(r, "num_cpu"), "1") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Gomaxprocs, FromTheEnvironmentCountsEvenWithOneCpu) {
  const ChildResult r = environment({"GOMAXPROCS=5"}, "one_cpu");
  EXPECT_EQ(value_of(r, "gomaxprocs"), "5") << r;
  EXPECT_EQ(value_of(r, "num_cpu"), "1") << r;
}

TEST(DebugSettings, ThatAreUnknownAreNamedAndIgnored) {
  for (const char* value :
       {"nonsense=1", "model", "model=xyz", "guard=foo", "idlems=soon", "idlems=-1", "MODEL=gm"}) {
    const ChildResult r = environment({std::string("GOFER_DEBUG=") + value, "GOMAXPROCS"});
    expect_as_default(r, value);
    expect_named(r, "GOFER_DEBUG");
  }
}

TEST(DebugSettings, ThatAreRightCountBesideWrongOnes) {
  const ChildResult r = run_child("overflow_child", {"recursion"},
                                  {"GOFER_DEBUG=nonsense=1,guard=mprotect,other,model=gm"});
  EXPECT_EQ(count_of(r.err, "gofer: "), 2) << r;
  EXPECT_TRUE(r.err_has("nonsense")) << r;
  EXPECT_TRUE(r.err_has("other")) << r;
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
}

TEST(DebugSettings, ThatAreLongOrStrangeDoNoHarm) {
  for (const std::string& value :
       {std::string(100'000, 'x'), std::string(100'000, ','), std::string("=,=,==,,=a"),
        std::string("model=gm\n\x01%s%n,guard=\xff\xfe")}) {
    const ChildResult r = environment({"GOFER_DEBUG=" + value, "GOMAXPROCS"});
    expect_as_default(r, value.substr(0, 20));
    EXPECT_LT(r.err.size(), 2000u) << r;
  }
}

TEST(StackSize, ThatIsWrongIsNamedAndIgnored) {
  for (const char* value : {"abc", "0", "-1", "1X", "63K", "1025M", "99999999999999999999", "K"}) {
    const ChildResult r =
        environment({std::string("GOFER_STACK_SIZE=") + value, "GOFER_DEBUG", "GOMAXPROCS"});
    expect_as_default(r, value);
    expect_named(r, std::string("GOFER_STACK_SIZE=") + value);
  }
}

TEST(Settings, ThatAreEmptyAreAsIfNotThere) {
  const ChildResult r = environment({"GOMAXPROCS=", "GOFER_DEBUG=", "GOFER_STACK_SIZE="});
  expect_as_default(r, "empty");
  EXPECT_EQ(r.err, "") << r;
}

// ---- Threads

TEST(MaxThreads, AnswersTheOldSetting) {
  const ChildResult r = environment({}, "max_threads_answers");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "10000\n10000\n500\n500\n600\n") << r;
}

TEST(MaxThreads, ExceededIsFatalAsInGo) {
  const ChildResult r = environment({}, "limit");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(
      r.err.find("runtime: program exceeds 10-thread limit\nfatal error: thread exhaustion\n"), 0u)
      << r;
  EXPECT_EQ(count_of(r.err, "runtime: program exceeds"), 1) << r;
}

TEST(MaxThreads, LoweredBelowWhatIsThereIsFatal) {
  const ChildResult r = environment({}, "limit_lowered");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("runtime: program exceeds 5-thread limit\nfatal error: thread exhaustion\n"),
            0u)
      << r;
  EXPECT_EQ(r.out, "") << r;
}

TEST(MaxThreads, KeptIsNoMatter) {
  const ChildResult r = environment({}, "within_limit");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

// The child's pthread_create takes the place of libc's, and of TSan's, which TSan does not survive.
class NoThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (under_tsan) GTEST_SKIP() << "pthread_create is TSan's";
  }
};

ChildResult threads(const std::string& scenario, const std::string& argument = "") {
  return run_child("threads_child", {scenario, argument});
}

// The child may end before the runtime has asked for a thread, or has said that it got none.
void expect_said_at_most_once(const ChildResult& r) {
  EXPECT_LE(count_of(r.err, "gofer: cannot start one more thread"), 1) << r;
  EXPECT_EQ(count_of(r.err, "gofer: cannot start one more thread"), count_of(r.err, "\n")) << r;
}

TEST_F(NoThreads, BeyondTheFirstAllWorkIsDoneAllTheSame) {
  for (const char* allowed : {"1", "2", "3"}) {
    const ChildResult r = threads("refused_after", allowed);
    EXPECT_TRUE(r.exited_with(0)) << allowed << ": " << r;
    EXPECT_TRUE(r.out_has("completed\n")) << allowed << ": " << r;
    expect_said_at_most_once(r);
  }
}

TEST_F(NoThreads, ForAWhileAndThenThereAreMore) {
  const ChildResult r = threads("refused_for_a_while");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_LE(count_of(r.err, "\n"), 1) << r;
}

TEST_F(NoThreads, ForAWhileAndTheOnlyOneIsLocked) {
  const ChildResult r = threads("refused_for_a_while_locked");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "refused: yes\ncompleted\n") << r;
  EXPECT_EQ(count_of(r.err, "gofer: cannot start one more thread"), 1) << r;
  expect_said_at_most_once(r);
}

TEST_F(NoThreads, ForAWhileAndTheOnlyOneSleepsInACall) {
  for (const char* call : {"refused_for_a_while_asleep", "refused_for_a_while_announced",
                           "refused_for_a_while_before_timer"}) {
    const ChildResult r = threads(call);
    EXPECT_TRUE(r.exited_with(0)) << call << ": " << r;
    EXPECT_EQ(r.out, "completed\n") << call << ": " << r;
    EXPECT_EQ(count_of(r.err, "gofer: cannot start one more thread"), 1) << call << ": " << r;
  }
}

TEST_F(NoThreads, NotEvenTheFirstIsAnExceptionAndNothingIsLost) {
  const ChildResult r = threads("first_refused");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out,
            "system_error EAGAIN\nsystem_error EAGAIN\nsystem_error EAGAIN\nsystem_error EAGAIN\n"
            "goroutines: 0\ncompleted\n")
      << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- Memory

ChildResult memory(const std::string& scenario, const std::vector<std::string>& variables = {}) {
  return run_child("memory_child", {scenario}, variables, std::chrono::seconds(120));
}

// Sanitizers need terabytes of address space for themselves.
class NoAddressSpace : public testing::Test {
 protected:
  void SetUp() override {
    if (under_asan || under_tsan) GTEST_SKIP() << "address space cannot be limited";
  }
};

void expect_survived(const ChildResult& r, long at_least, long at_most) {
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(count_of(r.out, "bad_alloc\n"), 1) << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
  const std::size_t at = r.out.find("started: ");
  ASSERT_NE(at, std::string::npos) << r;
  const long started = std::stol(r.out.substr(at + 9));
  EXPECT_GE(started, at_least) << r;
  EXPECT_LE(started, at_most) << r;
}

// 2 GiB for stacks of 1 MiB. The threads that are started meanwhile take their share (a stack of
// 8 MiB, perhaps an arena of malloc's), so the lower bounds are half of what one would count.
TEST_F(NoAddressSpace, ForOneMoreGoroutineIsAnExceptionAndAllOthersFinish) {
  expect_survived(memory("parked"), 1000, 2700);
}

TEST_F(NoAddressSpace, InAGoroutineThatStartsOthers) {
  expect_survived(memory("parked_from_goroutine"), 1000, 2700);
}

TEST_F(NoAddressSpace, ForStacksOfAnotherSize) { expect_survived(memory("sized"), 15, 34); }

TEST_F(NoAddressSpace, ForAClosureOnTheHeap) {
  expect_survived(memory("large_closures"), 100, 520);
}

TEST(StackSize, ThatIsAbsurdIsAnException) {
  const ChildResult r = memory("absurd_sizes");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(count_of(r.out, "bad_alloc\n"), 6) << r;
  EXPECT_TRUE(r.out_has("goroutines: 0\ncompleted\n")) << r;
  EXPECT_FALSE(r.out_has("ran\n")) << r;
}

TEST(NoMappings, AreLeftForGuardsAndStacksGoWithout) {
  if (under_asan || under_tsan) GTEST_SKIP() << "too many stacks";
  for (const char* guard : {"guard=mprotect", "guard=none"}) {
    const ChildResult r = memory("mappings", {with_debug(guard)});
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_TRUE(r.out_has("completed\n")) << r;
    EXPECT_EQ(r.err, "") << r;
    EXPECT_LT(std::stol(value_of(r, "mappings")), 65530 / 2) << r;
  }
}

TEST(NoMappings, BecauseTheProgramHasThemAllMakesGoroutinesWaitForStacks) {
  if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer needs mappings, too";
  const ChildResult r = memory("no_mappings");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
  const bool some_waited = r.out_has("at once: some\n");
  EXPECT_EQ(count_of(r.err, "gofer: no stack to be had"), some_waited ? 1 : 0) << r;
}

// ---- Memory that is promised, or locked

long parked_kb(const ChildResult& r, const std::string& name) {
  return std::stol(value_of(r, name));
}

TEST(LockedMemory, IsWhatAGoroutineTouchesAndNotAllOfItsStack) {
  if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer's shadow cannot be locked";
  const ChildResult r = memory("locked");
  if (r.out_has("not allowed\n")) GTEST_SKIP() << "mlockall is not allowed";
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
  // Threads have stacks of 8 MiB, which libc makes and the kernel fills.
  EXPECT_LT(parked_kb(r, "resident"), 8 * 1024 * (parked_kb(r, "threads") + 1) + 16 * 1024) << r;
}

TEST(PromisedMemory, OfAGoroutineIsSmall) {
  if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer has memory of its own";
  for (const char* settings : {"overcommit=1", "overcommit=0", "guard=mprotect", "guard=none"}) {
    const ChildResult r = memory("promised", {with_debug(settings)});
    EXPECT_TRUE(r.exited_with(0)) << settings << r;
    EXPECT_LT(parked_kb(r, "stacks"), 160 * 1024) << settings << r;
  }
}

TEST(PromisedMemory, IsAskedForInGoIfTheKernelMayRefuseIt) {
  if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer has memory of its own";
  expect_survived(memory("data_limit", {with_debug("overcommit=0")}), 1000, 2700);
}

}  // namespace
