// A thread that is detached from its beginning. std::thread::detach() has two faults here: if the
// thread ends meanwhile, pthread_detach of glibc before 2.38 reads what the thread has just given
// back; and if the process ends before the call, TSan reports a thread that was not joined.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "os/thread.h"

namespace gofer::test {

inline void start_detached(std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  const auto run = [](void* arg) -> void* {
    const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(arg));
    (*body)();
    return nullptr;
  };
  if (internal::os::start_thread(run, owned.get()) != 0) {
    std::fputs("start_detached: no thread\n", stderr);
    std::abort();
  }
  owned.release();
}

}  // namespace gofer::test
