// The outermost layer of a trace file: a header, and then one batch after the other.
//
//   header   "go 1.", the version, " trace", three zero bytes
//   batch    kind (EventBatch, or ExperimentalBatch and the experiment); the varints generation, M,
//            time, size; then as many bytes of data
//   the end of a generation, from 1.26 on: the kind EndOfGeneration alone
//
// The scanner reads headers and skips the data. It checks sizes against the format's limit and the
// file's end, so a batch that it returns is in the file as a whole.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/reader/event_types.h"
#include "trace/reader/source.h"

namespace gofer::tool {

constexpr uint32_t max_batch_size = 64 << 10;

struct Batch {
  uint64_t generation = 0;
  uint64_t m = 0;
  uint64_t time = 0;
  uint64_t begin = 0;      // of the batch in the file
  uint64_t data = 0;       // of its data in the file
  uint32_t size = 0;       // of its data
  uint8_t experiment = 0;  // 0: none
  EventType first =
      EventType::invalid;        // the first byte of the data, which says what a batch holds
  bool ends_generation = false;  // an EndOfGeneration, which has none of the fields above
};

class BatchScanner {
 public:
  /// Reads the header. Throws FileError if it is not that of a trace, or of a version that is not
  /// supported.
  explicit BatchScanner(Source& source);

  int version() const { return version_; }
  /// The offset of the next batch.
  uint64_t offset() const { return offset_; }

  /// The next batch; none at the end of the file. Throws TraceError.
  std::optional<Batch> next();

 private:
  Window window_;
  uint64_t size_;
  uint64_t offset_ = 0;
  int version_ = 0;
};

/// Whether traces with the header "go 1.<version>" are supported: 22, 23, 25 and 26.
bool is_supported_version(int version);

}  // namespace gofer::tool
