// main of every test executable: GoogleTest, and a limit for each test.
//
// A test that hangs is named on stderr and aborted (with a core file where the system keeps them)
// long before ctest would end the whole executable. A timer signal, not a thread: a thread would
// be one that the runtime must watch, and it would keep the deadlock report silent.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/sanitizer.h"

namespace {

constexpr unsigned limit_seconds = gofer::internal::sanitizers_enabled ? 400 : 200;

char running_test[256];

void say(const char* text) { (void)!write(STDERR_FILENO, text, strlen(text)); }

void on_alarm(int) {
  say("\ntests/support/main.cc: time limit exceeded in ");
  say(running_test);
  say("\n");
  abort();
}

class Limit : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    snprintf(running_test, sizeof running_test, "%s.%s", test.test_suite_name(), test.name());
    alarm(limit_seconds);
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  testing::UnitTest::GetInstance()->listeners().Append(new Limit);
  return RUN_ALL_TESTS();
}
