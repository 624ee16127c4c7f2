// Crashes: what is reported of them, and how the process ends. Each in a child process.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

ChildResult crash(const std::string& how, const std::string& where = "goroutine",
                  std::vector<std::string> environment = {}) {
  return run_child("crash_child", {how, where}, environment);
}

class Crash : public testing::Test {
 protected:
  void SetUp() override {
    if (under_asan || under_tsan) GTEST_SKIP() << "a sanitizer has a report of its own";
  }
};

struct Kind {
  const char* how;
  int signal;
  const char* text;  // a regular expression
};

constexpr Kind kinds[] = {
    {"store_to_null", SIGSEGV, "SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x[0-9a-f]+"},
    {"call_null", SIGSEGV, "SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x0"},
    {"not_canonical", SIGSEGV, "SIGSEGV: segmentation violation code=0x80 addr=0x0 pc=0x[0-9a-f]+"},
    {"divide", SIGFPE, "SIGFPE: floating-point exception code=0x1 addr=0x[0-9a-f]+ pc=0x[0-9a-f]+"},
    {"no_instruction", SIGILL,
     "SIGILL: illegal instruction code=0x2 addr=0x[0-9a-f]+ pc=0x[0-9a-f]+"},
    {"beyond_end_of_file", SIGBUS, "SIGBUS: bus error code=0x2 addr=0x[0-9a-f]+ pc=0x[0-9a-f]+"},
    {"aborts", SIGABRT, "SIGABRT: abort pc=0x[0-9a-f]+"},
    {"raises", SIGSEGV, "SIGSEGV: segmentation violation pc=0x[0-9a-f]+"}};

void expect_report(const ChildResult& r, const Kind& kind, const std::string& header) {
  const std::regex report("^fatal error: unexpected signal\n\\[signal " + std::string(kind.text) +
                          "\\]\n\n" + header + " \\[running\\]:\n");
  EXPECT_TRUE(std::regex_search(r.err, report, std::regex_constants::match_continuous)) << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:"), 1) << r;
  EXPECT_FALSE(r.out_has("went on")) << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("\n" + std::string(kind.how) + "(...)\n\t")) << r;
  }
}

TEST_F(Crash, InAGoroutineIsReportedAndEndsTheProcessBySignal) {
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.how);
    const ChildResult r = crash(kind.how);
    EXPECT_TRUE(r.killed_by(kind.signal)) << r;
    expect_report(r, kind, "goroutine " + value_of(r, "id") + " \"the culprit\"");
    if (has_symbols) {
      EXPECT_TRUE(r.err_has("\ncreated by in_place")) << r;
    }
  }
}

TEST_F(Crash, InTheMainGoroutineIsReported) {
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.how);
    const ChildResult r = crash(kind.how, "main_goroutine");
    EXPECT_TRUE(r.killed_by(kind.signal)) << r;
    expect_report(r, kind, "goroutine [0-9]+");
  }
}

TEST_F(Crash, InAForeignThreadIsReportedWithoutAGoroutine) {
  for (const char* where : {"thread", "main_thread"}) {
    for (const Kind& kind : kinds) {
      SCOPED_TRACE(std::string(kind.how) + " in " + where);
      const ChildResult r = crash(kind.how, where);
      EXPECT_TRUE(r.killed_by(kind.signal)) << r;
      expect_report(r, kind, "thread [0-9]+");
    }
  }
}

TEST_F(Crash, ByAnAssertionIsReportedAfterItsText) {
  const ChildResult r = crash("asserts");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  const std::size_t text = r.err.find("Assertion `zero == 1' failed.\n");
  const std::size_t report = r.err.find("fatal error: unexpected signal\n[signal SIGABRT: abort ");
  EXPECT_LT(text, report) << r;
  EXPECT_NE(report, std::string::npos) << r;
  EXPECT_TRUE(r.err_has("\" [running]:\n")) << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("\nasserts(...)\n\t")) << r;
  }
}

// The thread holds malloc's lock: no name is demangled then.
TEST_F(Crash, WithinMallocIsReported) {
  const ChildResult r = crash("corrupts_heap");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("fatal error: unexpected signal\n[signal SIGABRT: abort ")) << r;
  EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " \"the culprit\" [running]:\n")) << r;
  EXPECT_TRUE(r.err_has("crash_child+0x")) << r;
  EXPECT_TRUE(r.err_has("\ncreated by ")) << r;
}

TEST_F(Crash, BesideAThousandGoroutinesIsReportedAlone) {
  const ChildResult r = crash("store_to_null", "goroutine,thousand");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  expect_report(r, kinds[0], "goroutine " + value_of(r, "id") + " \"the culprit\"");
}

TEST_F(Crash, IsReportedOnceIfManyCrashAtTheSameTime) {
  const ChildResult r = crash("all_at_once");
  EXPECT_TRUE(r.killed_by(r.err_has("SIGSEGV") ? SIGSEGV : SIGFPE)) << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:"), 1) << r;
}

TEST_F(Crash, InARecursionShowsItsBothEnds) {
  const ChildResult r = crash("recursion");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  EXPECT_TRUE(r.err_has("frames elided...\n")) << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("\nstore_to_null(...)\n\t")) << r;
    EXPECT_TRUE(r.err_has("\ncreated by in_place")) << r;
  }
}

TEST_F(Crash, InsideOfTheRuntimeSaysSoAndShowsAllFrames) {
  const ChildResult r = crash("inside_runtime");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  EXPECT_EQ(r.err.find("fatal error: unexpected signal during runtime execution\n[signal SIGSEGV"),
            0u)
      << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("\ngofer_main(...)\n\t")) << r;
  }
}

TEST_F(Crash, WithABrokenStackIsReportedWithTheFramesThatAreLeft) {
  for (const char* how : {"smashes_stack_pointer", "smashes_frames"}) {
    SCOPED_TRACE(how);
    const ChildResult r = crash(how);
    EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
    EXPECT_EQ(r.err.find("fatal error: unexpected signal"), 0u) << r;
    EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " \"the culprit\" [running")) << r;
  }
}

TEST_F(Crash, OfTheReportItselfEndsTheProcessByTheFirstSignal) {
  const ChildResult r = crash("broken_record");
  EXPECT_TRUE(r.killed_by(SIGFPE)) << r;
  EXPECT_EQ(r.err.find("fatal error: unexpected signal\n[signal SIGFPE: "), 0u) << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
}

TEST_F(Crash, InDestructorsIsReportedWhereSignalsArrive) {
  for (const char* how : {"thread_local_destructor", "static_destructor"}) {
    SCOPED_TRACE(how);
    const ChildResult r = crash(how);
    EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
    EXPECT_TRUE(r.err_has("\n\nthread ")) << r;
  }
  // A thread of the runtime blocks all signals as it ends.
  const ChildResult r = crash("thread_local_destructor_of_m");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
}

TEST_F(Crash, ByASignalFromOutsideNamesTheSender) {
  const ChildResult r = crash("sent_from_outside");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(std::regex_search(r.err, std::regex("\\[signal SIGABRT: abort sent by process [0-9]+ "
                                                  "pc=0x[0-9a-f]+\\]\n\n(thread|goroutine) ")))
      << r;
}

TEST_F(Crash, InAForkedChildIsReported) {
  const ChildResult r = crash("forked_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("child=11\n")) << r;
  EXPECT_TRUE(r.err_has("[signal SIGSEGV")) << r;
}

// The child has borrowed the parent's memory.
TEST_F(Crash, InAVforkedChildLeavesTheParentAsItIs) {
  const ChildResult r = crash("vforked_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "child=11\nwent on\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- handlers of the program

TEST_F(Crash, ReachesAHandlerThatWasThereBeforeAfterTheReport) {
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.how);
    const ChildResult r = crash(kind.how, "goroutine,handler");
    EXPECT_TRUE(r.exited_with(9)) << r;
    EXPECT_TRUE(r.out_has("own handler\n")) << r;
    expect_report(r, kind, "goroutine " + value_of(r, "id") + " \"the culprit\"");
  }
}

TEST_F(Crash, OfAForeignThreadIsAHandlersAlone) {
  const ChildResult r = crash("store_to_null", "thread,handler");
  EXPECT_TRUE(r.exited_with(9)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(Crash, IsReportedOnceIfTheHandlerIsForOneSignalOnly) {
  const ChildResult r = crash("store_to_null", "goroutine,handler_once,returns");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  EXPECT_EQ(count_of(r.out, "own handler\n"), 1) << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
}

TEST_F(Crash, ByAbortEndsTheProcessEvenIfAHandlerReturns) {
  const ChildResult r = crash("aborts", "goroutine,handler,returns");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.out_has("own handler\n")) << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
}

TEST_F(Crash, IsALaterHandlersAlone) {
  const ChildResult r = crash("divide", "goroutine,late_handler");
  EXPECT_TRUE(r.exited_with(9)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(Crash, ThatIsIgnoredCountsOnlyIfItIsAFault) {
  ChildResult r = crash("raises", "goroutine,ignored");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("went on\n")) << r;
  EXPECT_EQ(r.err, "") << r;
  r = crash("divide", "goroutine,ignored");
  EXPECT_TRUE(r.killed_by(SIGFPE)) << r;
  EXPECT_TRUE(r.err_has("[signal SIGFPE")) << r;
}

TEST_F(Crash, OnPurposeIsReportedOnceAndHandledEachTime) {
  const ChildResult r = crash("on_purpose");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(count_of(r.err, "[signal "), 1) << r;
}

TEST_F(Crash, IsNotReportedIfTheEnvironmentSaysSo) {
  ChildResult r = crash("on_purpose", "", {with_debug("crash=0")});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
  for (const Kind& kind : kinds) {
    r = crash(kind.how, "goroutine", {with_debug("crash=0")});
    EXPECT_TRUE(r.killed_by(kind.signal)) << r;
    EXPECT_EQ(r.err, "") << r;
  }
  r = run_child("overflow_child", {"recursion"}, {with_debug("crash=0")});
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
}

// ---- faults that sanitizers see first, if there is one

void expect_segfault(const ChildResult& r) {
  if (under_asan) {  // which has a report of its own
    EXPECT_TRUE(r.err_has("AddressSanitizer: SEGV on unknown address")) << r;
    EXPECT_NE(r.exit_code, 0) << r;
  } else if (under_tsan) {
    EXPECT_TRUE(r.err_has("ThreadSanitizer: SEGV on unknown address")) << r;
    EXPECT_NE(r.exit_code, 0) << r;
  } else {
    EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
    EXPECT_TRUE(r.err_has("[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 ")) << r;
  }
  EXPECT_EQ(r.err_has("[signal "), !under_asan && !under_tsan) << r;
  EXPECT_FALSE(r.err_has("stack overflow")) << r;
}

ChildResult overflow(const std::string& scenario) {
  return run_child("overflow_child", {scenario});
}

TEST(Fault, OfANullPointerEndsTheProcessAsUsual) {
  expect_segfault(overflow("null_in_goroutine"));
  expect_segfault(overflow("null_in_thread"));
}

TEST(Fault, ThatWasSentEndsTheProcess) {
  for (const char* scenario : {"raised_in_goroutine", "raised_in_thread"}) {
    const ChildResult r = overflow(scenario);
    EXPECT_EQ(r.out, "") << scenario << ": " << r;
    EXPECT_NE(r.exit_code, 0) << scenario << ": " << r;
    if (!under_asan && !under_tsan) {
      EXPECT_TRUE(r.killed_by(SIGSEGV)) << scenario << ": " << r;
    }
  }
}

TEST(Fault, OfAThreadsOwnStackIsNotOurs) {
  const ChildResult r = overflow("thread_overflow");
  EXPECT_FALSE(r.err_has("goroutine")) << r;
  if (!under_asan && !under_tsan) {
    EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  }
}

TEST(Fault, ReachesAHandlerThatWasThereBefore) {
  for (const char* scenario :
       {"plain_handler_goroutine", "info_handler_goroutine", "info_handler_thread"}) {
    const ChildResult r = overflow(scenario);
    EXPECT_TRUE(r.exited_with(9)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "own handler\n") << scenario << ": " << r;
  }
}

TEST(Fault, MayBeRepairedOrLeftByAHandlerThatWasThereBefore) {
  for (const char* scenario : {"repairing_handler", "jumping_handler"}) {
    const ChildResult r = overflow(scenario);
    EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "completed\n") << scenario << ": " << r;
  }
}

TEST(Abort, IsReportedEvenBesideASanitizer) {
  const ChildResult r = crash("aborts");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("fatal error: unexpected signal\n[signal SIGABRT: abort pc=0x"), 0u) << r;
  EXPECT_TRUE(r.err_has("\n\ngoroutine " + value_of(r, "id") + " \"the culprit\" [running]:\n"))
      << r;
}

// ---- core files

class CoreFile : public Crash {
 protected:
  void SetUp() override {
    Crash::SetUp();
    if (IsSkipped()) return;
    std::string pattern;
    std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
    if (pattern.empty() || pattern.find_first_of("|/") != pattern.npos) {
      GTEST_SKIP() << "core files go elsewhere: " << pattern;
    }
    char name[] = "/tmp/gofer-core-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    if (WEXITSTATUS(in_shell("true")) != 0) GTEST_SKIP() << "the limit of core files is hard";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Returns the status as wait() gives it.
  int in_shell(const std::string& command, std::string* out = nullptr) {
    const std::string line =
        "cd " + folder_ + " && ulimit -c unlimited && exec " + command + " 2>&1 </dev/null";
    FILE* pipe = popen(line.c_str(), "r");
    char text[4096];
    while (const std::size_t n = fread(text, 1, sizeof text, pipe)) {
      if (out != nullptr) out->append(text, n);
    }
    return pclose(pipe);
  }

  std::string core() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with("core")) return entry.path();
    }
    return "(none)";
  }

  std::string backtrace(const std::string& program) {
    std::string out;
    in_shell("env DEBUGINFOD_URLS= timeout 120 gdb -batch -nx -ex bt " + program + " " + core(),
             &out);
    return out;
  }

  static bool has_gdb() { return system("gdb --version >/dev/null 2>&1") == 0; }

  std::string folder_;
};

TEST_F(CoreFile, OfACrashShowsTheGoroutineWhereItCrashed) {
  const std::string program = std::string(GOFER_TEST_PROGRAMS) + "/crash_child";
  for (const char* how : {"store_to_null", "divide", "aborts"}) {
    SCOPED_TRACE(how);
    std::string err;
    const int status = in_shell(program + " " + how + " goroutine", &err);
    ASSERT_TRUE(WIFSIGNALED(status)) << status << err;
    EXPECT_TRUE(WCOREDUMP(status)) << err;
    if (!has_gdb()) continue;
    const std::string trace = backtrace(program);
    const std::size_t crashed = trace.find(std::string(how) + " ()");
    ASSERT_NE(crashed, std::string::npos) << trace;
    EXPECT_EQ(trace.find("<signal handler called>"), std::string::npos) << trace;
    EXPECT_LT(crashed, trace.find("gofer_main")) << trace;
    std::filesystem::remove(core());
  }
}

TEST_F(CoreFile, OfAnUncaughtExceptionShowsTheThrow) {
  const std::string program = std::string(GOFER_TEST_PROGRAMS) + "/uncaught_child";
  std::string err;
  const int status = in_shell(program + " nested", &err);
  ASSERT_TRUE(WIFSIGNALED(status)) << status << err;
  EXPECT_EQ(WTERMSIG(status), SIGABRT) << err;
  EXPECT_TRUE(WCOREDUMP(status)) << err;
  if (!has_gdb()) return;
  const std::string trace = backtrace(program);
  EXPECT_NE(trace.find("innermost ()"), std::string::npos) << trace;
  EXPECT_NE(trace.find("outermost ()"), std::string::npos) << trace;
}

}  // namespace
