#include "trace/reader/names.h"

#include <algorithm>

namespace gofer::tool {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

}  // namespace

Names::Names() : strings_(1), stacks_(1) { string_ids_.emplace(strings_.front(), 0); }

StringId Names::intern(std::string_view text) {
  if (const auto found = string_ids_.find(text); found != string_ids_.end()) return found->second;
  const auto id = static_cast<StringId>(strings_.size());
  strings_.emplace_back(text);
  string_ids_.emplace(strings_.back(), id);
  return id;
}

size_t Names::FrameHash::operator()(const Frame& frame) const {
  return mix(mix(mix(mix(0, frame.pc), frame.function), frame.file), frame.line);
}

uint32_t Names::intern(const Frame& frame) {
  const auto [at, is_new] = frame_ids_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return at->second;
}

StackId Names::intern(std::span<const Frame> frames) {
  if (frames.empty()) return 0;
  const uint64_t first = stack_frames_.size();
  uint64_t hash = 0;
  for (const Frame& frame : frames) {
    stack_frames_.push_back(intern(frame));
    hash = mix(hash, stack_frames_.back());
  }
  const auto begin = stack_frames_.begin();
  const auto [from, to] = stack_ids_.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    const Stack& other = stacks_[it->second];
    if (other.count == frames.size() &&
        std::equal(begin + static_cast<ptrdiff_t>(first), stack_frames_.end(),
                   begin + static_cast<ptrdiff_t>(other.first))) {
      stack_frames_.resize(first);
      return it->second;
    }
  }
  const auto id = static_cast<StackId>(stacks_.size());
  stacks_.push_back({first, static_cast<uint32_t>(frames.size())});
  stack_ids_.emplace(hash, id);
  return id;
}

}  // namespace gofer::tool
