// Programs in which a goroutine throws and no caller takes the exception, and some in which one
// does.
#include <gofer/gofer.h>

#include <stdexcept>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

void fail() { throw std::runtime_error("no disk"); }

int end() {
  require(wait_until([] { return gofer::num_goroutine() == 0; }), "all goroutines end");
  say("ended");
  return 0;
}

// The future goes before the goroutine throws.
int dropped_before() {
  gofer::chan<int> gate(0);
  static_cast<void>(gofer::async([gate] {
    gate.recv();
    fail();
  }));
  gate.send(1);
  return end();
}

int dropped_after() {
  {
    auto f = gofer::async(fail);
    f.wait();
  }
  return end();
}

int dropped_int() {
  {
    auto f = gofer::async([] { throw 7; });
    f.wait();
  }
  return end();
}

int taken() {
  try {
    gofer::async(fail).get();
  } catch (const std::runtime_error&) {
  }
  gofer::task_group group;
  group.go(fail);
  try {
    group.wait();
  } catch (const std::runtime_error&) {
  }
  return end();
}

int dropped_value() {
  static_cast<void>(gofer::async([] { return 1; }));
  return end();
}

int dropped_goexit() {
  static_cast<void>(gofer::async([] { gofer::goexit(); }));
  return end();
}

struct NoText : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

template <class Error>
int dropped() {
  static_cast<void>(gofer::async([] { throw Error(); }));
  return end();
}

int group_without_wait() {
  {
    gofer::task_group group;
    group.go(fail);
  }
  return end();
}

int group_left_by_exception() {
  try {
    gofer::task_group group;
    group.go(fail);
    throw 1;
  } catch (int) {
  }
  return end();
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"dropped_before", dropped_before},
                       {"dropped_after", dropped_after},
                       {"dropped_int", dropped_int},
                       {"taken", taken},
                       {"dropped_value", dropped_value},
                       {"dropped_goexit", dropped_goexit},
                       {"no_text", dropped<NoText>},
                       {"group_without_wait", group_without_wait},
                       {"group_left_by_exception", group_left_by_exception}});
}
