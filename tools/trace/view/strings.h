// The strings, stacks and endings that the page refers to by number. Only those that are used are
// written.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/json.h"
#include "trace/reader/names.h"

namespace gofer::tool {

/// Why a goroutine left its P.
enum class EndKind : uint8_t {
  none,
  blocked,        // and for what
  stopped,        // it yielded, or was preempted, and can go on
  ended,          // the goroutine
  lost,           // a system call lasted, and the P was taken
  still_running,  // when the trace ended
  paused,         // preempted by a signal or a check, and tied to its thread
};

struct End {
  EndKind kind = EndKind::none;
  uint32_t reason = 0;  // a string of the page
  uint32_t stack = 0;   // a stack of the page
  auto operator<=>(const End&) const = default;
};

class PageStrings {
 public:
  explicit PageStrings(const Names& names) : names_(names) {}

  /// The page's number for a string or a stack of the trace. 0: the empty string, no stack.
  uint32_t string(StringId id);
  uint32_t stack(StackId id);
  uint32_t end(const End& end);
  const End& end_of(uint32_t number) const { return ends_[number]; }

  /// "strings", "frames", "stacks" and "ends", as fields of an open object.
  void put(Json& json);

 private:
  struct PageFrame {
    uint32_t function = 0, file = 0;
    uint64_t line = 0;
    auto operator<=>(const PageFrame&) const = default;
  };

  const Names& names_;
  std::vector<StringId> strings_{0};
  std::unordered_map<StringId, uint32_t> string_numbers_{{0, 0}};
  std::vector<std::vector<uint32_t>> stacks_{{}};
  std::unordered_map<StackId, uint32_t> stack_numbers_{{0, 0}};
  std::vector<PageFrame> frames_;
  std::map<PageFrame, uint32_t> frame_numbers_;
  std::vector<End> ends_{{}};
  std::map<End, uint32_t> end_numbers_{{{}, 0}};
};

}  // namespace gofer::tool
