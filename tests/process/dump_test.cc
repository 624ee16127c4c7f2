// Dumps: what they say of goroutines in every state, in a program that goes on, on signals and in
// reports.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/pipe.h"
#include "support/report.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

// ---- Reading a dump

struct Entry {
  long count = 1;
  long id = 0;  // the first one
  std::string ids;
  std::string name;
  std::string state;
  std::vector<std::string> functions;
  std::string creator;
  std::string text;

  bool has(const std::string& function) const {
    for (const std::string& f : functions) {
      if (f.find(function) != f.npos) return true;
    }
    return false;
  }
};

std::ostream& operator<<(std::ostream& out, const Entry& e) { return out << e.text; }

const std::regex one("goroutine (\\d+)(?: \"(.*)\")? \\[(.*)\\]:");
const std::regex group("(\\d+) goroutines(?: \"(.*)\")? \\[(.*)\\]: ((\\d+).*)");
const std::regex function("([^\\t].*)\\(\\.\\.\\.\\)");
const std::regex creator("created by (.*)");

std::vector<Entry> parse(const std::string& dump) {
  std::vector<Entry> entries;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, one)) {
      entries.emplace_back();
      entries.back().id = std::stol(match[1]);
      entries.back().name = match[2];
      entries.back().state = match[3];
    } else if (std::regex_match(line, match, group)) {
      entries.emplace_back();
      entries.back().count = std::stol(match[1]);
      entries.back().name = match[2];
      entries.back().state = match[3];
      entries.back().ids = match[4];
      entries.back().id = std::stol(match[5]);
    } else if (!entries.empty() && std::regex_match(line, match, creator)) {
      entries.back().creator = match[1];
    } else if (!entries.empty() && std::regex_match(line, match, function)) {
      entries.back().functions.push_back(match[1]);
    }
    if (!entries.empty()) entries.back().text += line + "\n";
  }
  return entries;
}

Entry named(const std::vector<Entry>& entries, const std::string& name) {
  for (const Entry& e : entries) {
    if (e.name == name) return e;
  }
  ADD_FAILURE() << "no goroutine of the name " << name;
  return {};
}

long total(const std::vector<Entry>& entries) {
  long n = 0;
  for (const Entry& e : entries) n += e.count;
  return n;
}

std::string dumped(const debug::dump_options& options = {}) {
  std::ostringstream out;
  debug::dump(out, options);
  return out.str();
}

ChildResult child(const std::string& scenario, const std::string& debug = "",
                  const std::string& argument = "") {
  return run_child("dump_child", {scenario, argument}, {with_debug(debug)}, 120s);
}

// ---- Every state

// What a goroutine of that name is shown in: one of these states, with that function.
struct Expected {
  const char* name;
  const char* states;
  const char* function;
};

constexpr Expected parked[] = {
    {"receiver", "chan receive", "receives"},
    {"sender", "chan send", "sends"},
    {"selector", "select", "selects"},
    {"sleeper", "sleep", "sleeps"},
    {"locker", "sync\\.Mutex\\.Lock", "locks"},
    {"reader", "sync\\.RWMutex\\.RLock", "reads_rw"},
    {"writer", "sync\\.RWMutex\\.Lock", "writes_rw"},
    {"acquirer", "semacquire", "acquires"},
    {"waiter", "sync\\.WaitGroup\\.Wait", "waits"},
    {"cond", "sync\\.Cond\\.Wait", "waits_for_cond"},
    {"nil", "chan receive \\(nil chan\\)", "receives_nil"},
    {"bound", "chan receive, locked to thread", "bound_receives"},
    {"yielder", "runnable|running|preempted", "yields"},
};
constexpr Expected on_threads[] = {
    {"spinner", "running|preempted|runnable", "spins"},
    {"bound spinner", "(running|preempted|runnable), locked to thread", "bound_spins"},
    {"unannounced", "syscall|running", "blocks_unannounced"},
    {"announced", "syscall", "blocks_announced"},
};

void expect_shown(const std::vector<Entry>& entries, const Expected& wanted) {
  SCOPED_TRACE(wanted.name);
  const Entry e = named(entries, wanted.name);
  EXPECT_TRUE(std::regex_match(e.state, std::regex(wanted.states))) << e;
  if (!has_symbols) return;
  EXPECT_TRUE(e.has(wanted.function)) << e;
  EXPECT_EQ(e.creator.find("start_all in goroutine 1"), 0u) << e;
}

// TSan delays signals until the program makes a call that it knows.
class WithSignals : public testing::Test {
 protected:
  void SetUp() override {
    if (under_tsan) GTEST_SKIP() << "which delays signals";
  }
};
using Sigquit = WithSignals;
using DumpSignal = WithSignals;
using Report = WithSignals;

TEST(Dump, ShowsAGoroutineInEachStateWithItsTraceAndCreator) {
  if (under_tsan) GTEST_SKIP() << "which delays signals";
  const ChildResult r = child("states");
  ASSERT_TRUE(r.exited_with(0)) << r;
  const std::vector<Entry> entries = parse(r.out);
  ASSERT_FALSE(entries.empty()) << r;
  EXPECT_EQ(entries[0].id, 1) << "the caller comes first: " << r;
  EXPECT_EQ(entries[0].state, "running") << r;
  for (const Expected& e : parked) expect_shown(entries, e);
  if (under_tsan) return;  // which delays signals
  for (const Expected& e : on_threads) expect_shown(entries, e);
  EXPECT_EQ(count_of(r.out, "does not answer"), 1) << r;
}

TEST(Dump, SaysWhatAGoroutineWillDoThatHasNotStarted) {
  if (under_tsan) GTEST_SKIP() << "which delays signals";
  const ChildResult r = child("states");
  const Entry fresh = named(parse(r.out), "fresh");
  EXPECT_NE(fresh.text.find("\tnot started yet\n"), fresh.text.npos) << r;
  if (!has_symbols) return;
  EXPECT_TRUE(fresh.has("never_begins")) << r;
  EXPECT_NE(fresh.creator.find("states::"), fresh.creator.npos) << r;
}

TEST(Dump, SaysSoIfAThreadBlocksTheSignalThatAsksForItsTrace) {
  if (under_asan || under_tsan) GTEST_SKIP() << "the sanitizer's pthread_sigmask binds nothing";
  const ChildResult r = child("states");
  for (const Entry& e : parse(r.out)) {
    if (e.text.find("does not answer") == e.text.npos) continue;
    EXPECT_EQ(e.state, "syscall, locked to thread") << e;
    EXPECT_NE(e.creator, "") << e;
  }
}

TEST(Dump, SaysForHowManyMinutesGoroutinesWait) {
  const ChildResult r = child("since");
  ASSERT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("\ngoroutine 2 [chan receive, 12 minutes]:\n")) << r;
  EXPECT_TRUE(r.out_has("\"later\" [chan receive, 5 minutes]:\n")) << r;
  EXPECT_TRUE(r.out_has("[chan receive, 12 minutes, locked to thread]:\n")) << r;
  const std::size_t last = r.out.rfind("----");
  EXPECT_EQ(parse(r.out.substr(last)).size(), 2u) << "those of 10 minutes and more: " << r;
}

// ---- In a program that goes on

void receive_from(const chan<int>& c) { (void)c.recv(); }

// So many goroutines, all at the same place, for as long as it lives.
class Receivers {
 public:
  explicit Receivers(int n) {
    for (int i = 0; i < n; ++i) all_.go({.name = "receiver"}, [this] { receive_from(c_); });
    EXPECT_TRUE(wait_until([n] { return parked() == n; }));
  }
  ~Receivers() {
    c_.close();
    all_.wait();
  }
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

 private:
  static long parked() {
    const auto entries = parse(dumped({.traces = false}));
    long n = 0;
    for (const Entry& e : entries) n += e.state == "chan receive" ? e.count : 0;
    return n;
  }
  chan<int> c_{0};
  wait_group all_;
};

TEST(Dump, OfTenThousandGoroutinesGroupsThoseThatAreEqual) {
  const int n = scaled(10'000, 10);
  run([=] {
    const Receivers receivers(n);
    const std::vector<Entry> entries = parse(dumped());
    EXPECT_EQ(total(entries), n + 1);
    EXPECT_LT(entries.size(), 20u);
    const Entry e = named(entries, "receiver");
    EXPECT_GT(e.count, n / 2) << e;
    if (has_symbols) {
      EXPECT_TRUE(e.has("receive_from")) << e;
    }
  });
}

// The same code, and so frames of the same size.
template <int kind>
[[gnu::noinline]] void receive_as(const chan<int>& c, int depth) {
  if (depth > 0) {
    receive_as<kind>(c, depth - 1);
  } else {
    (void)c.recv();
  }
  asm volatile("" : : "i"(kind) : "memory");
}

TEST(Dump, TellsStacksApartThatDifferInOneCallOnly) {
  run([] {
    const int each = 50;
    chan<int> c(0);
    wait_group all;
    for (int i = 0; i < each; ++i) {
      for (int depth = 0; depth < 3; ++depth) {
        all.go({.name = "first"}, [=] { receive_as<1>(c, depth); });
        all.go({.name = "second"}, [=] { receive_as<2>(c, depth); });
      }
    }
    while (count_of(dumped({.group = debug::grouping::never, .traces = false}), "[chan receive]") <
           6 * each) {
      yield();
    }
    const std::vector<Entry> entries = parse(dumped({.group = debug::grouping::always}));
    int groups = 0;
    for (const Entry& e : entries) {
      if (e.name != "first" && e.name != "second") continue;
      ++groups;
      EXPECT_EQ(e.count, each) << e;
      if (has_symbols) {
        EXPECT_TRUE(e.has(e.name == "first" ? "receive_as<1>" : "receive_as<2>")) << e;
      }
    }
    EXPECT_EQ(groups, 6);
    c.close();
    all.wait();
  });
}

TEST(Dump, OfAFewIsNotGrouped) {
  run([] {
    const Receivers receivers(10);
    EXPECT_EQ(parse(dumped()).size(), 11u);
    EXPECT_EQ(total(parse(dumped())), 11);
  });
}

TEST(Dump, IsGroupedOrNotAsWished) {
  run([] {
    const Receivers receivers(200);
    EXPECT_EQ(parse(dumped({.group = debug::grouping::never})).size(), 201u);
  });
  run([] {
    const Receivers receivers(5);
    const std::vector<Entry> entries = parse(dumped({.group = debug::grouping::always}));
    EXPECT_LT(entries.size(), 6u);
    EXPECT_EQ(total(entries), 6);
  });
}

TEST(Dump, EndsAtTheLimitAndSaysHowManyItLeavesOut) {
  run([] {
    const Receivers receivers(20);
    const std::string text = dumped({.group = debug::grouping::never, .limit = 5});
    EXPECT_EQ(parse(text).size(), 5u);
    EXPECT_NE(text.find("...16 goroutines not shown...\n"), text.npos) << text;
  });
}

TEST(Dump, LeavesTracesOutAsWished) {
  run([] {
    const Receivers receivers(3);
    const std::string text = dumped({.traces = false});
    EXPECT_EQ(count_of(text, "\n\t"), 0) << text;
    EXPECT_EQ(parse(text).size(), 4u) << text;
  });
}

TEST(Dump, LeavesOutGoroutinesThatHaveNotWaitedForLong) {
  run([] {
    const Receivers receivers(3);
    EXPECT_EQ(dumped({.waiting_for = 1h}), "");
  });
}

TEST(Dump, WorksInAThreadThatIsNotAGoroutine) {
  const Receivers receivers(3);
  const std::vector<Entry> entries = parse(dumped());
  EXPECT_EQ(entries.size(), 3u);
  for (const Entry& e : entries) EXPECT_EQ(e.state, "chan receive") << e;
}

TEST(Dump, GoesToADescriptor) {
  const Pipe pipe;
  run([&pipe] { debug::dump(pipe.ends[1]); });
  char text[4096];
  const ssize_t n = read(pipe.ends[0], text, sizeof text);
  ASSERT_GT(n, 0);
  const std::vector<Entry> entries = parse(std::string(text, static_cast<std::size_t>(n)));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].state, "running");
}

TEST(Dump, IsWholeIfOthersAreMadeAtTheSameTime) {
  const int times = scaled(6, 3);
  const int dumpers = 3;
  run([&] {
    const Receivers receivers(20);
    std::atomic<int> whole{0};
    const auto work = [&] {
      for (int i = 0; i < times; ++i) {
        long receiving = 0;
        for (const Entry& e : parse(dumped())) receiving += e.name == "receiver" ? e.count : 0;
        whole += receiving == 20 ? 1 : 0;
      }
    };
    wait_group all;
    for (int i = 0; i < dumpers; ++i) all.go(work);
    std::thread thread(work);
    all.wait();
    blocking([&] { thread.join(); });
    EXPECT_EQ(whole, (dumpers + 1) * times);
  });
}

// A reader that is a goroutine of the same program, on the only processor, perhaps.
TEST(Dump, DoesNotKeepTheProcessorWhileItsReaderIsSlow) {
  run([] {
    const Receivers receivers(500);
    const Pipe pipe;
    wait_group both;
    std::string text;
    both.go([&] {
      debug::dump(pipe.ends[1], {.group = debug::grouping::never});
      (void)!write(pipe.ends[1], "end", 3);
    });
    both.go([&] {
      while (!text.ends_with("end")) {
        char part[512];
        const ssize_t n = read(pipe.ends[0], part, sizeof part);
        ASSERT_GT(n, 0);
        text.append(part, static_cast<std::size_t>(n));
      }
    });
    both.wait();
    EXPECT_GT(total(parse(text)), 500);
  });
}

TEST(Dump, UnderFireIsWholeAndInterruptsNoCall) {
  if (under_tsan) GTEST_SKIP() << "which delays signals";
  const ChildResult r = child("fire", "", "5");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

TEST(Dump, WorksWithoutMembarrier) {
  if (under_tsan) GTEST_SKIP() << "which delays signals";
  const ChildResult r = child("heard_states", "membarrier=0");
  ASSERT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(count_of(r.out, "does not answer"), 0) << r;
  for (const Expected& e : on_threads) {
    const Entry shown = named(parse(r.out), e.name);
    if (has_symbols) {
      EXPECT_TRUE(shown.has(e.function)) << shown;
    }
  }
}

TEST(Dump, ShowsWhereAGoroutineIsThatIsNeverPreempted) {
  if (under_tsan) GTEST_SKIP() << "which delays signals";
  const ChildResult r =
      run_child("dump_child", {"one_spins"}, {with_debug("asyncpreemptoff=1"), "GOMAXPROCS=2"});
  ASSERT_TRUE(r.exited_with(0)) << r;
  const Entry spinner = named(parse(r.out), "spinner");
  EXPECT_EQ(spinner.state, "running") << r;
  if (has_symbols) {
    EXPECT_TRUE(spinner.has("spins")) << r;
  }
}

// ---- SIGQUIT

constexpr const char* quit = "SIGQUIT: quit\nPC=0x";

TEST_F(Sigquit, EndsTheProcessWithADumpOfAllGoroutines) {
  const ChildResult r = child("quit");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(quit), 0u) << r;
  const std::vector<Entry> entries = parse(r.err);
  for (const Expected& e : parked) expect_shown(entries, e);
  if (under_tsan) return;
  for (const Expected& e : on_threads) expect_shown(entries, e);
}

TEST_F(Sigquit, WorksWhileTheMainThreadIsInRun) {
  const ChildResult r = child("quit_from_thread");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(quit), 0u) << r;
  EXPECT_TRUE(r.err_has("\n\ngoroutine 1 [chan receive]:\n")) << r;
}

TEST_F(Sigquit, WorksIfTheRuntimeItselfIsStuck) {
  const ChildResult r = child("quit_stuck");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(quit), 0u) << r;
  EXPECT_EQ(named(parse(r.err), "receiver").state, "chan receive") << r;
}

TEST_F(Sigquit, IsLeftToTheProgramIfThatHandlesIt) {
  for (const char* scenario : {"quit_handled_before", "quit_handled_later"}) {
    const ChildResult r = child(scenario);
    EXPECT_TRUE(r.exited_with(0)) << scenario << r;
    EXPECT_TRUE(r.out_has("handled=1\n")) << scenario << r;
    EXPECT_EQ(r.err, "") << scenario << r;
  }
  const ChildResult r = child("quit_notified");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("notified\n")) << r;
}

TEST_F(Sigquit, StaysIgnoredOrBecomesTheDefaultAgain) {
  const ChildResult ignored = child("quit_ignored");
  EXPECT_TRUE(ignored.exited_with(0)) << ignored;
  EXPECT_EQ(ignored.err, "") << ignored;
  const ChildResult by_default = child("quit_default_later");
  EXPECT_TRUE(by_default.killed_by(SIGQUIT)) << by_default;
  EXPECT_EQ(by_default.err, "") << by_default;
}

TEST_F(Sigquit, HasTheDefaultEffectIfTheEnvironmentSaysSo) {
  const ChildResult r = child("quit", "sigquit=0");
  EXPECT_TRUE(r.killed_by(SIGQUIT)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(Sigquit, HasTheDefaultEffectInTheChildOfAFork) {
  const ChildResult r = child("quit_in_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(value_of(r, "signal"), std::to_string(SIGQUIT)) << r;
}

// ---- dumpsignal

TEST_F(DumpSignal, MakesADumpEachTimeAndTheProgramGoesOn) {
  const ChildResult r = child("dump_signal", "dumpsignal=USR2");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(count_of(r.out, "SIGUSR2: 2 goroutines\n\ngoroutine 1 ["), 3) << r;
  EXPECT_EQ(count_of(r.out, "\"last\" [chan receive]:\n"), 3) << r;
}

TEST_F(DumpSignal, MayBeANumber) {
  const ChildResult r = child("dump_signal", "dumpsignal=" + std::to_string(SIGUSR2));
  EXPECT_TRUE(r.exited_with(0)) << r;
}

TEST_F(DumpSignal, ThatCannotBeUsedIsNamed) {
  for (const char* name : {"KILL", "URG", "SEGV", "NOSUCH", "0", "65"}) {
    const ChildResult r = child("deadlocks", std::string("dumpsignal=") + name);
    EXPECT_EQ(r.err.find(std::string("gofer: GOFER_DEBUG: dumpsignal=") + name), 0u) << r;
  }
}

// ---- Reports

TEST_F(Report, ShowsTheGoroutinesThatGofersTracebackAsksFor) {
  ChildResult r = child("throws");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(count_of(r.err, "\ngoroutine "), 1) << r;
  r = child("throws", "traceback=none");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err, "panic: std::runtime_error: thrown\n\n") << r;
  r = child("throws", "traceback=all");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  const std::vector<Entry> entries = parse(r.err);
  ASSERT_EQ(entries.size(), 3u) << r;
  EXPECT_EQ(entries[0].id, 1) << r;
  EXPECT_EQ(named(entries, "receiver").state, "chan receive") << r;
}

TEST_F(Report, OfAStackOverflowShowsTheOthersIfThatIsWanted) {
  const ChildResult r = child("overflows", "traceback=all");
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
  EXPECT_EQ(named(parse(r.err), "receiver").state, "chan receive") << r;
}

TEST_F(Report, OfADeadlockShowsAllButWithTracebackNone) {
  if (under_tsan) GTEST_SKIP() << "no deadlock is found";
  ChildResult r = child("deadlocks");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(parse(r.err).size(), 2u) << r;
  r = child("deadlocks", "traceback=none");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(parse(r.err).size(), 0u) << r;
}

}  // namespace
}  // namespace gofer
