#include "trace/reader/event.h"

#include "trace/gofer_records.h"

namespace gofer::tool {
namespace {

std::string describe(const Arg& arg, uint64_t value) {
  switch (arg.kind) {
    case ArgKind::go_status:
      if (value > 0 && value <= 4) return std::string(to_string(static_cast<GoStatus>(value)));
      break;
    case ArgKind::proc_status:
      if (value > 0 && value <= 4) return std::string(to_string(static_cast<ProcStatus>(value)));
      break;
    default:
      break;
  }
  return value == none ? "none" : std::to_string(value);
}

}  // namespace

std::string describe(const Event& event) {
  if (event.type == EventType::gofer_record) {
    return "Gofer's record \"" + std::string(record_name(event.record)) + "\"";
  }
  const EventSpec& spec = event_spec(event.type);
  std::string text(spec.name);
  for (size_t i = 0; i < spec.count; ++i) {
    const Arg& arg = spec.args[i];
    if (arg.kind == ArgKind::stack || arg.kind == ArgKind::string) continue;
    text += ' ';
    text += arg.name;
    text += '=';
    text += describe(arg, event.args[i]);
  }
  return text;
}

}  // namespace gofer::tool
