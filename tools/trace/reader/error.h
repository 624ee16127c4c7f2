// What can be wrong with a trace, and where.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gofer::tool {

/// "No such M, P or goroutine": the format's own value for it, and never a valid id.
constexpr uint64_t none = ~uint64_t{0};

/// A place in a trace. Fields that do not apply are `none`.
struct Place {
  uint64_t generation = none;
  uint64_t m = none;
  uint64_t offset = none;  // of a byte in the file
};

/// The file cannot be opened or read, or is no trace at all.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The file is a trace, but a damaged one: cut off, or against the rules of the format.
class TraceError : public std::runtime_error {
 public:
  TraceError(const Place& place, const std::string& message)
      : std::runtime_error(describe(place) + message), place_(place) {}

  const Place& place() const { return place_; }

 private:
  static std::string describe(const Place& place) {
    std::string text;
    if (place.generation != none) text += "generation " + std::to_string(place.generation) + ", ";
    if (place.m != none) text += "M " + std::to_string(place.m) + ", ";
    if (place.offset != none) text += "byte " + std::to_string(place.offset) + ": ";
    return text;
  }

  Place place_;
};

}  // namespace gofer::tool
