// The strings and stacks of a whole trace.
//
// A trace numbers strings and stacks anew in each generation. The reader gives each distinct
// string, frame and stack one number for the whole trace, so what reads events can keep numbers,
// compare them, and look them up after the end. 0 is the empty string, and no stack.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gofer::tool {

using StringId = uint32_t;
using StackId = uint32_t;

struct Frame {
  uint64_t pc = 0;
  StringId function = 0;
  StringId file = 0;
  uint64_t line = 0;

  bool operator==(const Frame&) const = default;
};

class Names {
 public:
  Names();

  StringId intern(std::string_view text);
  StackId intern(std::span<const Frame> frames);  // the innermost frame first; none: 0

  std::string_view string(StringId id) const { return strings_[id]; }
  size_t string_count() const { return strings_.size(); }
  size_t stack_count() const { return stacks_.size(); }

  size_t depth(StackId id) const { return stacks_[id].count; }
  const Frame& frame(StackId id, size_t index) const {
    return frames_[stack_frames_[stacks_[id].first + index]];
  }

  /// The function of the outermost frame: that of the goroutine itself. 0 if there is no stack.
  StringId outermost(StackId id) const { return id == 0 ? 0 : frame(id, depth(id) - 1).function; }
  StringId innermost(StackId id) const { return id == 0 ? 0 : frame(id, 0).function; }

 private:
  struct Stack {
    uint64_t first = 0;  // in stack_frames_
    uint32_t count = 0;
  };
  struct FrameHash {
    size_t operator()(const Frame& frame) const;
  };

  uint32_t intern(const Frame& frame);

  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, StringId> string_ids_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, uint32_t, FrameHash> frame_ids_;
  std::vector<uint32_t> stack_frames_;
  std::vector<Stack> stacks_;
  std::unordered_multimap<uint64_t, StackId> stack_ids_;  // by a hash of the frames
};

}  // namespace gofer::tool
