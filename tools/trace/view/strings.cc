#include "trace/view/strings.h"

namespace gofer::tool {

uint32_t PageStrings::string(StringId id) {
  const auto [at, is_new] = string_numbers_.try_emplace(id, static_cast<uint32_t>(strings_.size()));
  if (is_new) strings_.push_back(id);
  return at->second;
}

uint32_t PageStrings::stack(StackId id) {
  const auto [at, is_new] = stack_numbers_.try_emplace(id, static_cast<uint32_t>(stacks_.size()));
  if (!is_new) return at->second;
  std::vector<uint32_t> frames;
  for (size_t i = 0; i < names_.depth(id); ++i) {
    const Frame& frame = names_.frame(id, i);
    const PageFrame own{string(frame.function), string(frame.file), frame.line};
    const auto [found, is_new_frame] =
        frame_numbers_.try_emplace(own, static_cast<uint32_t>(frames_.size()));
    if (is_new_frame) frames_.push_back(own);
    frames.push_back(found->second);
  }
  stacks_.push_back(std::move(frames));
  return at->second;
}

uint32_t PageStrings::end(const End& end) {
  const auto [at, is_new] = end_numbers_.try_emplace(end, static_cast<uint32_t>(ends_.size()));
  if (is_new) ends_.push_back(end);
  return at->second;
}

void PageStrings::put(Json& json) {
  json.key("strings").open('[');
  for (const StringId id : strings_) json.value(names_.string(id));
  json.close(']').key("frames").open('[');
  for (const PageFrame& frame : frames_) {
    json.open('[').value(frame.function).value(frame.file).value(frame.line).close(']');
  }
  json.close(']').key("stacks").open('[');
  for (const auto& stack : stacks_) {
    json.open('[');
    for (const uint32_t frame : stack) json.value(frame);
    json.close(']');
  }
  json.close(']').key("ends").open('[');
  for (const End& end : ends_) {
    json.open('[').value(static_cast<int>(end.kind)).value(end.reason).value(end.stack);
    json.close(']');
  }
  json.close(']');
}

}  // namespace gofer::tool
