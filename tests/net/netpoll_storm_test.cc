// Descriptors are opened, waited for and closed as quickly as that goes, so that their numbers and
// the netpoller's records belong to another one all the time.
//
// GOFER_STRESS_SECONDS in the environment makes it a million rounds, and that time at least.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "support/beside.h"
#include "support/census.h"
#include "support/descriptors.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

using NetpollStorm = NetworkTest;

// How a read that waits has ended.
struct Outcome {
  std::uint64_t value = 0;
  std::error_code ec;

  bool got(std::uint64_t id) const { return !ec && value == id; }
};

void set_deadline_unless_closed(const fd& in, std::chrono::microseconds from_now) {
  try {
    in.set_read_deadline(from_now);
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), io_errc::closed);
  }
}

// One pair of descriptors, with a reader that waits and what ends its wait, at the same time.
// Whether it ended as it must: what is written names the pair, and comes to no other.
bool live(std::uint64_t id) {
  constexpr std::uint64_t ways = 6;
  const Ends e = id / ways % 2 == 0 ? make_pipe() : make_pair();
  const auto pause = 1us * (id % 41);
  Outcome end;
  wait_group reader;
  reader.go([&] { e.in.read_full({&end.value, sizeof end.value}, end.ec); });
  for (std::uint64_t i = 0; i < id / ways % 4; ++i) yield();
  switch (id % ways) {
    case 0:
      e.in.close();
      reader.wait();
      return end.ec == io_errc::closed;
    case 1:
      e.in.set_read_deadline(pause);
      reader.wait();
      return end.ec == std::errc::timed_out;
    case 2:
      e.out.write_all({&id, sizeof id});
      reader.wait();
      return end.got(id);
    case 3:
      e.out.write_all({&id, sizeof id});
      e.in.close();
      reader.wait();
      return end.got(id) || end.ec == io_errc::closed;
    case 4:
      e.out.close();
      reader.wait();
      return end.ec == io_errc::unexpected_end;
    default:
      reader.go([&] { set_deadline_unless_closed(e.in, pause); });
      e.in.close();
      reader.wait();
      return end.ec == io_errc::closed || end.ec == std::errc::timed_out;
  }
}

// Goroutines that wait for other descriptors all the time, and must not be woken.
class Bystanders {
 public:
  Bystanders() {
    for (std::uint64_t i = 0; i < count; ++i) {
      ends_.push_back(make_pair());
      group_.go([this, i, in = ends_.back().in] {
        std::uint64_t value = 0;
        std::error_code ec;
        in.read_full({&value, sizeof value}, ec);
        right_ += !ec && value == i;
        ++woken_;
      });
    }
    EXPECT_TRUE(waiting_for_io(count));
  }
  ~Bystanders() {
    EXPECT_EQ(woken_, 0);
    for (std::uint64_t i = 0; i < count; ++i) ends_[i].out.write_all({&i, sizeof i});
    group_.wait();
    EXPECT_EQ(right_, count);
  }
  Bystanders(const Bystanders&) = delete;
  Bystanders& operator=(const Bystanders&) = delete;

 private:
  static constexpr int count = 8;
  std::vector<Ends> ends_;
  std::atomic<int> right_{0};
  std::atomic<int> woken_{0};
  wait_group group_;
};

TEST_F(NetpollStorm, NumbersAreReusedAllTheTime) {
  const auto rounds = static_cast<std::uint64_t>(scaled(stress_time() > 0s ? 1'000'000 : 6000));
  const auto end = clock::now() + stress_time();
  make_pair();  // the netpoller is there
  const int descriptors = open_sockets_and_pipes();
  const int watched = watched_descriptors();
  std::atomic<std::uint64_t> next{1};
  std::atomic<std::uint64_t> wrong{0};
  {
    const Bystanders bystanders;
    const auto work = [&] {
      for (;;) {
        const std::uint64_t id = next.fetch_add(1);
        if (id > rounds && clock::now() >= end) return;
        if (live(id)) continue;
        ++wrong;
        ADD_FAILURE() << "round " << id;
      }
    };
    wait_group workers;
    for (int i = 0; i < 8; ++i) workers.go(work);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back(work);
    workers.wait();
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(open_sockets_and_pipes(), descriptors);
  EXPECT_EQ(watched_descriptors(), watched);
}

}  // namespace
}  // namespace gofer
