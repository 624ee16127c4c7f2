// Traces whose descriptors do not take everything at once, or at all, and traces that have to end:
// what is in a file then is valid, the program goes on, and nothing of it is left in memory.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "os/memory.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/output.h"
#include "runtime/trace/session.h"
#include "support/child.h"
#include "support/scaled.h"
#include "support/traced.h"

namespace gofer::test {
namespace {

using namespace std::chrono_literals;
namespace tracer = internal::tracer;

// More events than a pipe or a socket's buffers take.
void make_many_events() {
  run([] {
    wait_group all;
    for (int i = 0; i < scaled(100'000, 10); ++i) {
      all.go([] {
        const trace::region region("a region with a name");
        yield();
      });
      if (i % 100 == 0) yield();
    }
    all.wait();
  });
}

// Reads all that comes from a descriptor into a file, in small pieces.
class SlowReader {
 public:
  SlowReader(int from, const TraceFile& to) : out_(to.path(), std::ios::binary) {
    thread_ = std::thread([this, from] {
      std::vector<char> some(3000);
      for (;;) {
        const ssize_t n = read(from, some.data(), some.size());
        if (n <= 0) break;
        out_.write(some.data(), n);
      }
      out_.close();
    });
  }
  void join() { thread_.join(); }

 private:
  std::ofstream out_;
  std::thread thread_;
};

// What a descriptor may take nothing for, while the object lives.
class Standstill {
 public:
  explicit Standstill(std::chrono::nanoseconds longest)
      : before_(tracer::longest_standstill_ns.exchange(longest.count())) {}
  ~Standstill() { tracer::longest_standstill_ns = before_; }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  int64_t before_;
};

TEST(TraceOutput, APipeOrSocketMayBeNonBlockingAndSlow) {
  for (const bool is_socket : {false, true}) {
    for (const int flags : {0, O_NONBLOCK}) {
      int ends[2];
      ASSERT_EQ(is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
      if (is_socket) std::swap(ends[0], ends[1]);
      ASSERT_EQ(fcntl(ends[1], F_SETFL, flags), 0);
      const TraceFile file;
      SlowReader reader(ends[0], file);
      trace::start(ends[1]);
      make_many_events();
      trace::stop();
      EXPECT_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, flags);
      close(ends[1]);
      reader.join();
      close(ends[0]);
      EXPECT_GE(file.read().count("UserRegionBegin"), 1000u);
    }
  }
}

TEST(TraceOutput, APipeThatNobodyReadsDoesNotHoldUpTheEnd) {
  const Standstill longest(50ms);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  trace::start(ends[1]);
  make_many_events();
  std::error_code ec;
  trace::stop(ec);
  EXPECT_EQ(ec, std::errc::timed_out);
  close(ends[0]);
  close(ends[1]);
}

TEST(TraceOutput, AFullPipeDoesNotHoldUpTheBegin) {
  const Standstill longest(50ms);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::vector<char> block(4096);
  size_t size = 0;
  for (ssize_t n; (n = write(ends[1], block.data(), block.size())) > 0;) size += n;
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  trace::start(ends[1]);
  std::vector<char> drain(size);
  for (size_t left = size; left != 0;) left -= read(ends[0], drain.data(), left);
  const TraceFile file;
  SlowReader reader(ends[0], file);
  trace::stop();
  close(ends[1]);
  reader.join();
  close(ends[0]);
  file.read();
}

TEST(TraceOutput, MayEndWhileTheMemoryLimitIsReachedAndNobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  trace::start(ends[1]);
  tracer::buffers.waiting += tracer::most_waiting;  // as if so much waited to be written
  std::error_code ec;
  make_many_events();
  tracer::buffers.waiting -= tracer::most_waiting;
  trace::stop(ec);
  EXPECT_EQ(ec, std::errc::no_buffer_space);
  close(ends[0]);
  close(ends[1]);
}

TEST(TraceOutput, APipeWithoutAReaderIsAnErrorAndNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  std::error_code ec;
  trace::start(ends[1], ec);
  EXPECT_EQ(ec, std::errc::broken_pipe);
  EXPECT_FALSE(trace::is_recording());
  close(ends[1]);
}

TEST(TraceOutput, WhatWasInTheFileBeforeStays) {
  const TraceFile file;
  const ChildResult child = run_child("traced_child", {"appends_beyond_limit", file.path()});
  EXPECT_TRUE(child.exited_with(0)) << child;
  std::ifstream in(file.path(), std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  constexpr size_t before = 100'000;
  ASSERT_GE(text.size(), before + 16);
  EXPECT_EQ(text.substr(0, before), std::string(before, '.'));
  // Behind it are the complete generations, and nothing of the one that did not fit.
  const TraceFile rest;
  std::ofstream(rest.path(), std::ios::binary) << text.substr(before);
  rest.read();
}

TEST(TraceOutput, AFileThatTakesItsNumberGetsNothing) {
  const TraceFile file;
  const TraceFile other;
  trace::start(file.path());
  int number = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ec;
    if (std::filesystem::read_symlink(entry, ec) == file.path()) {
      number = std::stoi(entry.path().filename());
    }
  }
  ASSERT_GE(number, 0);
  const int another = open(other.path(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  ASSERT_EQ(dup2(another, number), number);
  make_many_events();
  std::error_code ec;
  trace::stop(ec);
  EXPECT_EQ(ec, std::errc::bad_file_descriptor);
  EXPECT_EQ(std::filesystem::file_size(other.path()), 0u);
  EXPECT_GE(fcntl(number, F_GETFD), 0) << "the program's own file was closed";
  close(number);
  close(another);
}

TEST(TraceEnd, ARequestForATraceThatIsOverDoesNotEndTheNext) {
  const TraceFile first;
  trace::start(first.path());
  const uint64_t number = tracer::session.number;
  trace::stop();
  tracer::request_end(number);
  const TraceFile second;
  trace::start(second.path());
  tracer::request_end(number);
  run([] { yield(); });
  std::error_code ec;
  trace::stop(ec);
  EXPECT_FALSE(ec) << ec.message();
  first.read();
  EXPECT_GE(second.read().count("GoStart"), 1u);
}

TEST(TraceEnd, OfManyCallsEachReturnsWhenTheTraceIsComplete) {
  for (int i = 0; i < scaled(100, 10); ++i) {
    const TraceFile file;
    trace::start(file.path());
    wait_group all;
    std::vector<std::thread> threads;
    const auto end = [&] {
      std::error_code ec;
      trace::stop(ec);
      EXPECT_TRUE(!ec || ec == std::errc::invalid_argument) << ec.message();
      EXPECT_FALSE(trace::is_recording());
    };
    for (int k = 0; k < 2; ++k) {
      threads.emplace_back(end);
      all.go(end);
    }
    for (std::thread& t : threads) t.join();
    all.wait();
    file.read();
  }
}

// Each M has one that is nearly empty, or two, and there may be 10,000 Ms.
TEST(TraceMemory, ThereAreBuffersForThousandsOfMs) {
  const TraceFile file;
  trace::start(file.path());
  std::vector<tracer::Buffer*> all;
  for (int i = 0; i < 10'000; ++i) {
    tracer::Buffer* b = tracer::next_buffer(0, nullptr, tracer::session.generation, 1);
    ASSERT_NE(b, nullptr) << i;
    all.push_back(b);
  }
  for (tracer::Buffer* b : all) {
    tracer::buffers.waiting += internal::os::page_size;  // as if it had been full
    tracer::give_back(b);
  }
  trace::stop();
  file.read();
}

TEST(TraceMemory, NoneIsLeftAfterTheTrace) {
  const TraceFile file;
  trace::start(file.path());
  make_many_events();
  EXPECT_GT(tracer::buffers.mapped, 0);
  trace::stop();
  EXPECT_EQ(tracer::buffers.mapped, 0);
  EXPECT_EQ(tracer::buffers.waiting, 0u);
}

TEST(TraceTables, MayHaveAnyNumberOfNames) {
  constexpr int n = 6000;
  const TraceContents trace = traced([] {
    run([] {
      for (int i = 0; i < n; ++i) {
        const std::string name = "region " + std::to_string(i);
        const trace::region region(name);
      }
    });
  });
  int missing = 0;
  for (int i = 0; i < n; ++i) missing += !trace.texts.contains("region " + std::to_string(i));
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace gofer::test
