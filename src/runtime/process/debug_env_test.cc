// gofer-test: once
#include "runtime/process/debug_env.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using gofer::internal::DebugEnv;
using gofer::internal::parse_debug_env;
using Lines = std::vector<std::string>;

Lines complaints;

DebugEnv parse(const char* gofer_debug, const char* gomaxprocs = nullptr,
               const char* stack_size = nullptr) {
  complaints.clear();
  return parse_debug_env(gofer_debug, gomaxprocs, stack_size,
                         [](const char* message) { complaints.push_back(message); });
}

TEST(DebugEnv, HasDefaultsWithoutVariables) {
  const DebugEnv env = parse(nullptr);
  EXPECT_FALSE(env.model_gm);
  EXPECT_EQ(env.guard, DebugEnv::Guard::madvise);
  EXPECT_EQ(env.idle_ms, 5000);
  EXPECT_EQ(env.gomaxprocs, 0);
  EXPECT_EQ(env.stack_size, 0u);
  EXPECT_EQ(complaints, Lines{});
}

TEST(DebugEnv, ReadsEveryKey) {
  const DebugEnv env = parse("model=gm,guard=mprotect,idlems=20", "3", "256K");
  EXPECT_TRUE(env.model_gm);
  EXPECT_EQ(env.guard, DebugEnv::Guard::mprotect);
  EXPECT_EQ(env.idle_ms, 20);
  EXPECT_EQ(env.gomaxprocs, 3);
  EXPECT_EQ(env.stack_size, 256u << 10);
  EXPECT_EQ(parse("guard=none").guard, DebugEnv::Guard::none);
  EXPECT_TRUE(parse("overcommit=1").overcommit);
  EXPECT_FALSE(parse("overcommit=0").overcommit);
  EXPECT_EQ(parse("guard=madvise").guard, DebugEnv::Guard::madvise);
  EXPECT_EQ(parse("idlems=0").idle_ms, 0);
  EXPECT_EQ(complaints, Lines{});
}

TEST(DebugEnv, ReadsTheKeysOfReports) {
  EXPECT_TRUE(parse(nullptr).crash_report);
  EXPECT_FALSE(parse(nullptr).panic_exits);
  EXPECT_FALSE(parse("crash=0").crash_report);
  EXPECT_TRUE(parse("crash=1").crash_report);
  EXPECT_TRUE(parse("panic=exit").panic_exits);
  EXPECT_FALSE(parse("panic=exit,panic=abort").panic_exits);
  EXPECT_EQ(complaints, Lines{});
  EXPECT_FALSE(parse("panic=1").panic_exits);
  EXPECT_EQ(complaints, Lines{"gofer: GOFER_DEBUG: panic=1 is neither abort nor exit: ignored"});
}

TEST(DebugEnv, ReadsTheKeysOfPreemptionAndTraces) {
  EXPECT_EQ(parse(nullptr).schedtrace_ms, 0);
  EXPECT_FALSE(parse(nullptr).scheddetail);
  EXPECT_FALSE(parse(nullptr).async_preempt_off);
  const DebugEnv env = parse("schedtrace=20,scheddetail=1,asyncpreemptoff=1");
  EXPECT_EQ(env.schedtrace_ms, 20);
  EXPECT_TRUE(env.scheddetail);
  EXPECT_TRUE(env.async_preempt_off);
  EXPECT_FALSE(parse("asyncpreemptoff=1,asyncpreemptoff=0").async_preempt_off);
  EXPECT_FALSE(parse("scheddetail=0").scheddetail);
  EXPECT_EQ(complaints, Lines{});
}

TEST(DebugEnv, NamesBadValuesOfPreemptionAndTraces) {
  const DebugEnv env = parse("schedtrace=x,schedtrace=-5,scheddetail=2,asyncpreemptoff=yes");
  EXPECT_EQ(env.schedtrace_ms, 0);
  EXPECT_FALSE(env.scheddetail);
  EXPECT_FALSE(env.async_preempt_off);
  EXPECT_EQ(
      complaints,
      (Lines{"gofer: GOFER_DEBUG: schedtrace=x is not a number from 0 to 1000000000: ignored",
             "gofer: GOFER_DEBUG: schedtrace=-5 is not a number from 0 to 1000000000: ignored",
             "gofer: GOFER_DEBUG: scheddetail=2 is neither 0 nor 1: ignored",
             "gofer: GOFER_DEBUG: asyncpreemptoff=yes is neither 0 nor 1: ignored"}));
}

TEST(DebugEnv, TakesTheLastOfTwoValues) {
  EXPECT_FALSE(parse("model=gm,model=gmp").model_gm);
  EXPECT_EQ(complaints, Lines{});
}

TEST(DebugEnv, AcceptsEmptyListsAndItems) {
  EXPECT_TRUE(parse(",,model=gm,").model_gm);
  EXPECT_EQ(complaints, Lines{});
  parse("");
  EXPECT_EQ(complaints, Lines{});
}

TEST(DebugEnv, NamesWhatItDoesNotKnowAndReadsTheRest) {
  const DebugEnv env = parse("modle=gm,guard=x,idlems=-1,model,=,model=gm");
  EXPECT_TRUE(env.model_gm);
  EXPECT_EQ(env.guard, DebugEnv::Guard::madvise);
  EXPECT_EQ(env.idle_ms, 5000);
  EXPECT_EQ(complaints,
            (Lines{"gofer: GOFER_DEBUG: unknown key 'modle': ignored",
                   "gofer: GOFER_DEBUG: guard=x is not madvise, mprotect or none: ignored",
                   "gofer: GOFER_DEBUG: idlems=-1 is not a number from 0 to 1000000000: ignored",
                   "gofer: GOFER_DEBUG: 'model' is not key=value: ignored",
                   "gofer: GOFER_DEBUG: unknown key '': ignored"}));
}

TEST(DebugEnv, RefusesBadValuesOfKeys) {
  for (const char* text : {"model=", "model=GM", "model=gmpx", "model=gm ", "guard=", "guard=no",
                           "idlems=", "idlems=1s", "idlems=+1", "idlems= 1", "idlems=1000000001",
                           "idlems=99999999999999999999999", "idlems=0x10", " model=gm"}) {
    const DebugEnv env = parse(text);
    EXPECT_FALSE(env.model_gm) << text;
    EXPECT_EQ(env.guard, DebugEnv::Guard::madvise) << text;
    EXPECT_EQ(env.idle_ms, 5000) << text;
    EXPECT_EQ(complaints.size(), 1u) << text;
  }
}

TEST(Gomaxprocs, IsAPositiveNumber) {
  EXPECT_EQ(parse(nullptr, "1").gomaxprocs, 1);
  EXPECT_EQ(parse(nullptr, "4096").gomaxprocs, 4096);
  EXPECT_EQ(complaints, Lines{});
  for (const char* text : {"", "abc", "0", "-1", "2x", "+2", " 2", "2 ", "1.5", "0x2"}) {
    EXPECT_EQ(parse(nullptr, text).gomaxprocs, 0) << text;
    EXPECT_EQ(complaints, Lines{std::string("gofer: GOMAXPROCS=") + text +
                                " is not a positive number: ignored"});
  }
}

TEST(Gomaxprocs, IsCutAtItsLimit) {
  EXPECT_EQ(parse(nullptr, "4097").gomaxprocs, 4096);
  EXPECT_EQ(complaints, Lines{"gofer: GOMAXPROCS=4097 is too large: 4096 is used"});
  EXPECT_EQ(parse(nullptr, "99999999999999999999999").gomaxprocs, 4096);
  EXPECT_EQ(complaints.size(), 1u);
}

TEST(StackSize, IsInBytesOrWithASuffix) {
  EXPECT_EQ(parse(nullptr, nullptr, "65536").stack_size, 65536u);
  EXPECT_EQ(parse(nullptr, nullptr, "64K").stack_size, 65536u);
  EXPECT_EQ(parse(nullptr, nullptr, "64k").stack_size, 65536u);
  EXPECT_EQ(parse(nullptr, nullptr, "2M").stack_size, 2u << 20);
  EXPECT_EQ(parse(nullptr, nullptr, "1024m").stack_size, 1u << 30);
  EXPECT_EQ(parse(nullptr, nullptr, "1073741824").stack_size, 1u << 30);
  EXPECT_EQ(complaints, Lines{});
}

TEST(StackSize, OutsideOfItsLimitsIsNamedAndIgnored) {
  for (const char* text : {"0", "65535", "63K", "0M", "1025M", "1048577K", "1073741825",
                           "18446744073709551615M", "99999999999999999999999K"}) {
    EXPECT_EQ(parse(nullptr, nullptr, text).stack_size, 0u) << text;
    EXPECT_EQ(complaints, Lines{std::string("gofer: GOFER_STACK_SIZE=") + text +
                                " is not from 64K to 1024M: ignored"});
  }
}

TEST(StackSize, ThatIsNoSizeIsNamedAndIgnored) {
  for (const char* text : {"", "K", "M", "big", "-1M", "1MB", "1 M", "1G", "64KK"}) {
    EXPECT_EQ(parse(nullptr, nullptr, text).stack_size, 0u) << text;
    EXPECT_EQ(complaints, Lines{std::string("gofer: GOFER_STACK_SIZE=") + text +
                                " is not a size such as 262144, 256K or 1M: ignored"});
  }
}

TEST(DebugEnv, ShortensAndCleansWhatItQuotes) {
  parse(std::string(1000, 'x').append("=1").c_str());
  EXPECT_EQ(complaints,
            Lines{"gofer: GOFER_DEBUG: unknown key '" + std::string(40, 'x') + "...': ignored"});
  parse("a\nb\x1b=1");
  EXPECT_EQ(complaints, Lines{"gofer: GOFER_DEBUG: unknown key 'a?b?': ignored"});
}

}  // namespace
