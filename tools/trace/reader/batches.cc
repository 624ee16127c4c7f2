#include "trace/reader/batches.h"

#include <cctype>
#include <string>

#include "trace/reader/error.h"
#include "trace/reader/varint.h"

namespace gofer::tool {
namespace {

constexpr std::string_view header_begin = "go 1.";
constexpr std::string_view header_end{" trace\0\0\0", 9};
constexpr size_t header_size = 16;
// Kind, experiment, four varints, and the first byte of the data.
constexpr size_t max_batch_header = 2 + 4 * max_varint_size + 1;

/// The version in a header, or 0 if the bytes are none.
int parse_header(std::string_view bytes) {
  if (bytes.size() != header_size || !bytes.starts_with(header_begin) ||
      !bytes.ends_with(header_end)) {
    return 0;
  }
  const unsigned char tens = bytes[5], ones = bytes[6];
  if (!isdigit(tens) || !isdigit(ones)) return 0;
  return (tens - '0') * 10 + (ones - '0');
}

}  // namespace

bool is_supported_version(int version) {
  return version == 22 || version == 23 || version == 25 || version == 26;
}

BatchScanner::BatchScanner(Source& source) : window_(source, 4096), size_(source.size()) {
  const auto bytes = window_.at(0, header_size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), header_size));
  version_ = parse_header(text);
  if (version_ == 0) {
    throw FileError(text.empty()
                        ? "the file is empty"
                        : "not an execution trace: it does not begin with \"go 1.NN trace\"");
  }
  if (!is_supported_version(version_)) {
    throw FileError("a trace of format go 1." + std::to_string(version_) +
                    "; supported are 1.22, 1.23, 1.25 and 1.26");
  }
  offset_ = header_size;
}

std::optional<Batch> BatchScanner::next() {
  if (offset_ >= size_) return std::nullopt;
  Batch batch;
  batch.begin = offset_;
  const auto bytes = window_.at(offset_, std::min<uint64_t>(max_batch_header, size_ - offset_));
  const uint8_t* p = bytes.data();
  const uint8_t* const end = p + bytes.size();
  const auto fail = [&](const std::string& message) {
    throw TraceError({.offset = offset_}, message);
  };

  if (p == end) fail("the file became shorter while it was read");
  const auto kind = static_cast<EventType>(*p++);
  if (kind == EventType::end_of_generation && version_ >= 26) {
    ++offset_;
    batch.ends_generation = true;
    return batch;
  }
  if (kind == EventType::experimental_batch && version_ >= 23) {
    if (p == end) fail("the file ends in the header of a batch");
    batch.experiment = *p++;
    if (batch.experiment == 0) fail("an experimental batch has experiment 0");
  } else if (kind != EventType::event_batch) {
    fail("expected a batch, found a byte " + std::to_string(static_cast<int>(kind)));
  }
  uint64_t size = 0;
  for (uint64_t* field : {&batch.generation, &batch.m, &batch.time, &size}) {
    p = decode_varint(p, end, field);
    if (p == nullptr) {
      fail(bytes.size() < max_batch_header ? "the file ends in the header of a batch"
                                           : "the header of a batch has a number of over 64 bits");
    }
  }
  if (size > max_batch_size) {
    fail("a batch of " + std::to_string(size) + " bytes; the limit is " +
         std::to_string(max_batch_size));
  }
  batch.size = static_cast<uint32_t>(size);
  batch.data = offset_ + static_cast<uint64_t>(p - bytes.data());
  if (size_ - batch.data < size) {
    fail("the file ends in a batch: " + std::to_string(size_ - batch.data) + " of " +
         std::to_string(size) + " bytes are there");
  }
  if (batch.generation == 0) fail("a batch of generation 0");
  if (size > 0 && p < end) batch.first = static_cast<EventType>(*p);
  offset_ = batch.data + size;
  return batch;
}

}  // namespace gofer::tool
