// Where the bytes of a trace come from, and a window on them.
//
// The reader visits a file twice: once from batch to batch, and then, for each M, through the
// batches of that M. So it keeps a window of a few KiB for each M instead of the file. Rejected:
// mmap, because a file that somebody truncates meanwhile would end the tool with SIGBUS instead of
// a message.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gofer::tool {

class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  /// Reads up to `want` bytes from `offset` and returns how many there were: fewer only at the end.
  virtual size_t read(uint64_t offset, uint8_t* to, size_t want) = 0;
};

/// A regular file. Throws FileError if there is none that can be read.
std::unique_ptr<Source> open_file(const std::string& path);

/// Bytes in memory, which have to outlive the source.
std::unique_ptr<Source> open_bytes(std::span<const uint8_t> bytes);

/// A view of a source that moves forward. What at() returns is valid until the next call of it.
class Window {
 public:
  explicit Window(Source& source, size_t capacity) : source_(&source), capacity_(capacity) {}

  /// The bytes at `offset`: `want` of them or more, fewer only at the end of the source. `want` is
  /// at most the capacity. `limit` is the offset beyond which nothing needs to be read.
  std::span<const uint8_t> at(uint64_t offset, size_t want, uint64_t limit = ~uint64_t{0}) {
    if (offset >= begin_ && offset - begin_ <= bytes_.size()) {
      const size_t skipped = static_cast<size_t>(offset - begin_);
      if (bytes_.size() - skipped >= want) {
        return std::span<const uint8_t>(bytes_).subspan(skipped);
      }
    }
    return refill(offset, limit);
  }

 private:
  std::span<const uint8_t> refill(uint64_t offset, uint64_t limit);

  Source* source_;
  size_t capacity_;
  uint64_t begin_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace gofer::tool
