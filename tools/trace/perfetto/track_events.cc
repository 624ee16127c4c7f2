#include "trace/perfetto/track_events.h"

#include <algorithm>

namespace gofer::tool {
namespace {

constexpr size_t portion = 1 << 20;

// Fields of Perfetto's messages.
namespace trace {
constexpr uint32_t packet = 1;
}
namespace packet {
constexpr uint32_t timestamp = 8, sequence = 10, track_event = 11, interned_data = 12;
constexpr uint32_t sequence_flags = 13, track_descriptor = 60;
}  // namespace packet
namespace descriptor {
constexpr uint32_t uuid = 1, name = 2, parent = 5, child_ordering = 11, rank = 12;
}  // namespace descriptor
namespace event_field {
constexpr uint32_t annotation = 4, type = 9, name_id = 10, track = 11, flow = 47, last_flow = 48;
}  // namespace event_field
namespace annotation {
constexpr uint32_t name_id = 1, number = 3;
}  // namespace annotation
namespace interned {
constexpr uint32_t event_name = 2, annotation_name = 3, id = 1, name = 2;
}  // namespace interned

constexpr uint64_t our_sequence = 1;
constexpr uint64_t state_cleared = 1, needs_state = 2;  // flags of a sequence
constexpr uint64_t slice_begin = 1, slice_end = 2, instant_event = 3;
constexpr uint64_t explicit_order = 3;
constexpr uint64_t max_rank = 0x7fffffff;
constexpr uint64_t goroutine_name = 1;  // of an annotation

}  // namespace

TrackEvents::TrackEvents(Sink sink) : sink_(std::move(sink)) {}

void TrackEvents::packet_head() {
  out_.number(packet::sequence, our_sequence);
  out_.number(packet::sequence_flags, first_packet_ ? state_cleared : needs_state);
  if (!first_packet_) return;
  first_packet_ = false;
  out_.message(packet::interned_data, [&] {
    out_.message(interned::annotation_name, [&] {
      out_.number(interned::id, goroutine_name);
      out_.string(interned::name, "goroutine");
    });
  });
}

void TrackEvents::packet_done() {
  if (out_.bytes().size() >= portion) flush();
}

void TrackEvents::flush() {
  if (!out_.bytes().empty()) sink_(out_.bytes());
  out_.clear();
}

uint64_t TrackEvents::add_track(std::string_view name, uint64_t parent, uint64_t rank) {
  const uint64_t track = ++last_track_;
  out_.message(trace::packet, [&] {
    packet_head();
    out_.message(packet::track_descriptor, [&] {
      out_.number(descriptor::uuid, track);
      out_.string(descriptor::name, name);
      if (parent != 0) out_.number(descriptor::parent, parent);
      out_.number(descriptor::child_ordering, explicit_order);
      out_.number(descriptor::rank, std::min(rank, max_rank));
    });
  });
  packet_done();
  return track;
}

void TrackEvents::event(uint64_t track, int64_t ns, uint64_t type, std::string_view name,
                        const Details& details) {
  out_.message(trace::packet, [&] {
    packet_head();
    out_.number(packet::timestamp, static_cast<uint64_t>(ns));
    const StringId id = names_.intern(name);
    if (written_.size() <= id) written_.resize(id + 1);
    if (id != 0 && !written_[id]) {
      written_[id] = true;
      out_.message(packet::interned_data, [&] {
        out_.message(interned::event_name, [&] {
          out_.number(interned::id, id);
          out_.string(interned::name, name);
        });
      });
    }
    out_.message(packet::track_event, [&] {
      out_.number(event_field::type, type);
      out_.number(event_field::track, track);
      if (id != 0) out_.number(event_field::name_id, id);
      if (details.goroutine != none) {
        out_.message(event_field::annotation, [&] {
          out_.number(annotation::name_id, goroutine_name);
          out_.number(annotation::number, details.goroutine);
        });
      }
      if (details.arrow_from != 0) out_.fixed64(event_field::flow, details.arrow_from);
      if (details.arrow_to != 0) out_.fixed64(event_field::last_flow, details.arrow_to);
    });
  });
  packet_done();
}

void TrackEvents::begin(uint64_t track, int64_t ns, std::string_view name, const Details& details) {
  event(track, ns, slice_begin, name, details);
}

void TrackEvents::end(uint64_t track, int64_t ns) { event(track, ns, slice_end, {}, {}); }

void TrackEvents::instant(uint64_t track, int64_t ns, std::string_view name,
                          const Details& details) {
  event(track, ns, instant_event, name, details);
}

}  // namespace gofer::tool
