#include "trace/reader/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/reader/error.h"

namespace gofer::tool {
namespace {

class File : public Source {
 public:
  explicit File(const std::string& path) : path_(path) {
    fd_ =
        open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO without a writer: no wait
    if (fd_ < 0) fail(strerror(errno));
    struct stat info {};
    const char* problem = nullptr;
    if (fstat(fd_, &info) != 0) {
      problem = strerror(errno);
    } else if (!S_ISREG(info.st_mode)) {
      problem = "not a regular file";
    }
    if (problem != nullptr) {
      close(fd_);
      fail(problem);
    }
    size_ = static_cast<uint64_t>(info.st_size);
    (void)posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() override { close(fd_); }

  uint64_t size() const override { return size_; }

  size_t read(uint64_t offset, uint8_t* to, size_t want) override {
    size_t done = 0;
    while (done < want) {
      const ssize_t n = pread(fd_, to + done, want - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(strerror(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(path_ + ": " + problem);
  }

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

class Bytes : public Source {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t size() const override { return bytes_.size(); }

  size_t read(uint64_t offset, uint8_t* to, size_t want) override {
    if (offset >= bytes_.size()) return 0;
    const size_t n = std::min<uint64_t>(want, bytes_.size() - offset);
    memcpy(to, bytes_.data() + offset, n);
    return n;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<Source> open_file(const std::string& path) { return std::make_unique<File>(path); }

std::unique_ptr<Source> open_bytes(std::span<const uint8_t> bytes) {
  return std::make_unique<Bytes>(bytes);
}

std::span<const uint8_t> Window::refill(uint64_t offset, uint64_t limit) {
  const uint64_t end = std::min(limit, source_->size());
  const size_t want =
      offset >= end ? 0 : static_cast<size_t>(std::min<uint64_t>(capacity_, end - offset));
  bytes_.resize(want);
  bytes_.resize(source_->read(offset, bytes_.data(), want));
  begin_ = offset;
  return bytes_;
}

}  // namespace gofer::tool
