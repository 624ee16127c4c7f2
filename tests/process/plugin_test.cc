// The runtime in programs with plug-ins: two copies of it, and plug-ins that are closed.
#include <gtest/gtest.h>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

void expect_second_copy_named(const ChildResult& r, const std::string& other) {
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: two copies of Gofer in one process: one is in use in "), 0u)
      << r;
  EXPECT_TRUE(r.err_has(other)) << r;
  EXPECT_TRUE(r.err_has("libgofer.so")) << r;
}

TEST(TwoCopies, InProgramAndPluginAreAFatalErrorThatSaysWhatToDo) {
  for (const char* scenario : {"plugin_second", "plugin_second_global", "plugin_in_goroutine"}) {
    const ChildResult r = run_child("plugin_child", {scenario});
    expect_second_copy_named(r, "the program");
    EXPECT_EQ(r.out, "loaded\n") << scenario << ": " << r;
  }
}

TEST(TwoCopies, AreSeenIfThePluginsStartsFirst) {
  const ChildResult r = run_child("plugin_child", {"plugin_first"});
  expect_second_copy_named(r, "plugin_static.so");
  EXPECT_EQ(r.out, "ran 8\n") << r;
}

// Both may see the other, and say so.
TEST(TwoCopies, AreSeenIfBothStartAtTheSameTime) {
  for (int i = 0; i < 20; ++i) {
    const ChildResult r = run_child("plugin_child", {"plugin_at_once"});
    EXPECT_TRUE(r.exited_with(2)) << r;
    EXPECT_TRUE(r.err_has("two copies of Gofer in one process: one is in use in ")) << r;
    EXPECT_EQ(r.out, "") << r;
    if (HasFailure()) break;
  }
}

TEST(TwoCopies, OfWhichOneIsNeverUsedDoNoHarm) {
  const ChildResult r = run_child("plugin_child", {"plugin_unused"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Plugin, WithACopyOfItsOwnStaysLoadedWhenItIsClosed) {
  const ChildResult r = run_child("plugin_host_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
}

TEST(Plugin, MayBeClosedOnceAWaitGroupHasWaitedForItsGoroutines) {
  const ChildResult r = run_child("plugin_shared_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
}

}  // namespace
