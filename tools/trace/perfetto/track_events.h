// A file for ui.perfetto.dev: tracks, slices, instants and arrows, as packets of Perfetto's trace
// format.
//
// Names are written once and then referred to by number. Packets go to the sink in portions of 1
// MiB, so memory does not grow with the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "trace/perfetto/protobuf.h"
#include "trace/reader/error.h"
#include "trace/reader/names.h"

namespace gofer::tool {

class TrackEvents {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit TrackEvents(Sink sink);

  /// A new track below another, or below none (0). `rank` orders the tracks of one parent.
  uint64_t add_track(std::string_view name, uint64_t parent, uint64_t rank);

  struct Details {
    uint64_t arrow_from = 0;  // begins here; 0: none
    uint64_t arrow_to = 0;    // ends here
    uint64_t goroutine = none;
  };
  void begin(uint64_t track, int64_t ns, std::string_view name, const Details& details);
  void end(uint64_t track, int64_t ns);
  void instant(uint64_t track, int64_t ns, std::string_view name, const Details& details);

  /// Hands what is left to the sink.
  void flush();

 private:
  void event(uint64_t track, int64_t ns, uint64_t type, std::string_view name,
             const Details& details);
  void packet_head();
  void packet_done();

  Sink sink_;
  ProtobufWriter out_;
  Names names_;                // of events
  std::vector<bool> written_;  // which of them the file has
  uint64_t last_track_ = 0;
  bool first_packet_ = true;
};

}  // namespace gofer::tool
