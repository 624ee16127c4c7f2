// Calls that a signal interrupts, made again and again while signals of the runtime rain on all of
// its threads: none shows it.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/threads/m_table.h"
#include "runtime/watch/preempt.h"
#include "support/beside.h"
#include "support/pipe.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using internal::m_table;
using namespace test;

class Interrupted : public PausingTest {
 protected:
  static void rain(const std::function<bool()>& call) {
    std::atomic<bool> stop{false};
    std::atomic<int> made{0};
    std::atomic<int> interrupted{0};
    wait_group all;
    for (int i = 0; i < 2; ++i) {
      all.go([&] {
        while (!stop) {
          errno = 0;
          interrupted += !call() && errno == EINTR;
          ++made;
        }
      });
    }
    for (int round = 0; round < 15; ++round) {
      for (uint32_t id = 1;; ++id) {
        internal::M* m = m_table[id].load();
        if (m == nullptr) break;
        if (m->tid != 0) internal::signal_m(m);
      }
      std::this_thread::sleep_for(1500us);
    }
    stop = true;
    all.wait();
    EXPECT_EQ(interrupted, 0);
    EXPECT_GT(made, 0);
  }
};

TEST_F(Interrupted, Usleep) {
  rain([] { return usleep(1000) == 0; });
}
TEST_F(Interrupted, Nanosleep) {
  rain([] {
    const timespec t{0, 1'000'000};
    return nanosleep(&t, nullptr) == 0;
  });
}
TEST_F(Interrupted, Poll) {
  rain([] { return poll(nullptr, 0, 1) == 0; });
}
TEST_F(Interrupted, Select) {
  rain([] {
    timeval t{0, 1000};
    return select(0, nullptr, nullptr, nullptr, &t) == 0;
  });
}
TEST_F(Interrupted, EpollWait) {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  rain([fd] {
    epoll_event event;
    return epoll_wait(fd, &event, 1, 1) == 0;
  });
  close(fd);
}
TEST_F(Interrupted, Read) {
  Pipe pipe;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      static_cast<void>(pipe.write_one());
      std::this_thread::sleep_for(500us);
    }
  });
  rain([&] { return pipe.read_one(); });
  stop = true;
  writer.join();
}
TEST_F(Interrupted, SemTimedwait) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  rain([&] {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 1'000'000;
    if (t.tv_nsec >= 1'000'000'000) {
      t.tv_nsec -= 1'000'000'000;
      ++t.tv_sec;
    }
    return sem_timedwait(&semaphore, &t) == 0;
  });
  sem_destroy(&semaphore);
}
TEST_F(Interrupted, ConditionVariable) {
  std::mutex mutex;
  std::condition_variable cond;
  rain([&] {
    std::unique_lock lock(mutex);
    cond.wait_for(lock, 1ms);
    return true;
  });
}

struct Listener {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr address{};
  socklen_t size = sizeof(sa_family_t);
  Listener() {
    address.sa_family = AF_UNIX;
    EXPECT_EQ(bind(fd, &address, sizeof(sa_family_t)), 0);  // a name of the system's choice
    socklen_t room = sizeof address;
    EXPECT_EQ(getsockname(fd, &address, &room), 0);
    size = room;
    EXPECT_EQ(listen(fd, 0), 0);
  }
  ~Listener() { close(fd); }
};

TEST_F(Interrupted, Accept) {
  std::optional<Listener> listener(std::in_place);
  std::atomic<bool> stop{false};
  std::thread caller([&, address = listener->address, size = listener->size] {
    while (!stop) {
      const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      connect(fd, &address, size);
      close(fd);
      std::this_thread::sleep_for(500us);
    }
  });
  rain([&] {
    const int fd = accept(listener->fd, nullptr, nullptr);
    if (fd >= 0) close(fd);
    return fd >= 0;
  });
  stop = true;
  // The caller may wait for an accept; a shutdown would not end that wait.
  listener.reset();
  caller.join();
}

TEST_F(Interrupted, Connect) {
  Listener listener;
  std::atomic<bool> stop{false};
  std::thread answerer([&] {
    while (!stop) {
      pollfd fd{listener.fd, POLLIN, 0};
      if (poll(&fd, 1, 1) != 1) continue;
      close(accept(listener.fd, nullptr, nullptr));
      std::this_thread::sleep_for(500us);
    }
  });
  rain([&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = connect(fd, &listener.address, listener.size) == 0;
    const int error = errno;
    close(fd);
    errno = error;
    return connected;
  });
  stop = true;
  answerer.join();
}

// With a time limit of its own a socket is not covered by SA_RESTART.
TEST_F(Interrupted, ReceiveWithATimeLimit) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const timeval limit{0, 5000};
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  rain([&] {
    char c;
    return recv(ends[0], &c, 1, 0) == 1;
  });
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace gofer
