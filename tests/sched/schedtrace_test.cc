// GOFER_DEBUG=schedtrace: Go's lines, whatever the goroutines do.
// gofer-test: nogm
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"

namespace {

using namespace gofer::test;

std::vector<std::string> traced(const std::string& scenario, const std::string& settings) {
  const ChildResult r = run_child("trace_child", {scenario}, {with_debug(settings)});
  EXPECT_TRUE(r.exited_with(0)) << r;
  std::vector<std::string> lines;
  std::istringstream in(r.err);
  for (std::string line; std::getline(in, line);) {
    if (!in.eof()) lines.push_back(line);  // the end may have come in the middle of the last one
  }
  return lines;
}

const std::string head =
    R"(SCHED \d+ms: gomaxprocs=\d+ idleprocs=\d+ threads=\d+ spinningthreads=\d+ )"
    R"(needspinning=[01] idlethreads=\d+ runqueue=\d+)";
const std::string id = R"((nil|\d+))";
const std::string boolean = "(true|false)";

TEST(Schedtrace, HasALinePerInterval) {
  const std::regex line(head + R"( \[ (\d+ )+\] schedticks=\[ (\d+ )+\])");
  for (const char* scenario : {"idle", "hogged", "mixed"}) {
    const auto lines = traced(scenario, "schedtrace=20");
    EXPECT_GE(lines.size(), 1u) << scenario;
    for (const auto& l : lines) EXPECT_TRUE(std::regex_match(l, line)) << scenario << ": " << l;
  }
}

TEST(Schedtrace, HasEveryProcessorMachineAndGoroutineInDetail) {
  if (gofer::internal::tsan_enabled) GTEST_SKIP() << "details race with their owners";
  const std::regex first(head + " gcwaiting=" + boolean +
                         R"( nmidlelocked=-?\d+ stopwait=\d+ sysmonwait=)" + boolean);
  const std::regex p(R"(  P\d+: status=[0-4] schedtick=\d+ syscalltick=\d+ m=)" + id +
                     R"( runqsize=\d+ gfreecnt=\d+ timerslen=\d+)");
  const std::regex m(R"(  M\d+: p=)" + id + " curg=" + id + " spinning=" + boolean +
                     " blocked=" + boolean + " lockedg=" + id);
  const std::regex g(R"(  G\d+: status=\d\([a-zA-Z ().]*\) m=)" + id + " lockedm=" + id);
  for (const char* scenario : {"idle", "hogged", "mixed"}) {
    const auto lines = traced(scenario, "schedtrace=20,scheddetail=1");
    int heads = 0, ps = 0, ms = 0, gs = 0;
    for (const auto& l : lines) {
      const bool is_head = std::regex_match(l, first), is_p = std::regex_match(l, p),
                 is_m = std::regex_match(l, m), is_g = std::regex_match(l, g);
      heads += is_head;
      ps += is_p;
      ms += is_m;
      gs += is_g;
      EXPECT_TRUE(is_head || is_p || is_m || is_g) << scenario << ": " << l;
    }
    EXPECT_GE(heads, 1) << scenario;
    EXPECT_GE(ps, heads - 1) << scenario;
    EXPECT_GE(ms, heads - 1) << scenario;
    EXPECT_GE(gs, 1) << scenario;  // in some traces main has not begun yet, or has ended
  }
}

}  // namespace
