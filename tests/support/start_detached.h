// A thread that is detached from its beginning. std::thread::detach() of one that ends meanwhile
// may read what the thread has just given back: pthread_detach of glibc before 2.38 does.
#pragma once

#include <gtest/gtest.h>

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
  ASSERT_EQ(internal::os::start_thread(run, owned.get()), 0);
  owned.release();
}

}  // namespace gofer::test
