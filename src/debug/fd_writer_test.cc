// gofer-test: once
#include "debug/fd_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

namespace {

using gofer::internal::FdWriter;

class FdWriterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }

  int in() const { return ends_[1]; }

  std::string read_to_end() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
    return text;
  }

  int ends_[2];
};

TEST_F(FdWriterTest, WritesWhenItGoesOutOfScope) {
  { FdWriter(in()).print("goroutine %d [%s]:\n", 7, "running"); }
  EXPECT_EQ(read_to_end(), "goroutine 7 [running]:\n");
}

TEST_F(FdWriterTest, KeepsTheOrderAcrossManyBuffers) {
  std::string expected;
  {
    FdWriter out(in());
    for (int i = 0; i < 2000; ++i) {
      out.print("line %d ", i);
      out.write("and text\n");
      expected += "line " + std::to_string(i) + " and text\n";
    }
  }
  EXPECT_EQ(read_to_end(), expected);
}

TEST_F(FdWriterTest, WritesTextThatIsLongerThanItsBuffer) {
  const std::string text(5 * FdWriter::capacity + 3, 'x');
  { FdWriter(in()).write(text); }
  EXPECT_EQ(read_to_end(), text);
}

TEST_F(FdWriterTest, CutsFormattedTextThatIsLongerThanItsBuffer) {
  const std::string text(2 * FdWriter::capacity, 'x');
  {
    FdWriter out(in());
    out.write("before ");
    out.print("%s", text.c_str());
    out.write(" after");
  }
  EXPECT_EQ(read_to_end(), "before " + text.substr(0, FdWriter::capacity - 1) + " after");
}

TEST_F(FdWriterTest, WaitsForRoomInANonBlockingPipe) {
  ASSERT_EQ(fcntl(in(), F_SETFL, O_NONBLOCK), 0);
  ASSERT_GT(fcntl(in(), F_SETPIPE_SZ, 4096), 0);
  const std::string text(100'000, 'x');
  std::string got;
  std::thread reader([&] {
    char buffer[512];
    while (got.size() < text.size()) {
      const ssize_t n = read(ends_[0], buffer, sizeof buffer);
      if (n <= 0) break;
      got.append(buffer, n);
    }
  });
  { FdWriter(in()).write(text); }
  close(ends_[1]);
  ends_[1] = -1;
  reader.join();
  EXPECT_EQ(got, text);
}

TEST_F(FdWriterTest, LeavesErrnoAlone) {
  FdWriter out(-1);
  errno = ENOTTY;
  out.write("nowhere to go");
  out.flush();
  EXPECT_EQ(errno, ENOTTY);
}

}  // namespace
