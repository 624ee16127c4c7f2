#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "trace/perfetto/convert.h"
#include "trace/testing/trace_writer.h"

namespace gofer::tool {
namespace {

using namespace testing;
using T = EventType;

/// A field of a message: a number, or bytes.
struct Field {
  uint64_t number = 0;
  std::string bytes;
};
using Message = std::multimap<uint64_t, Field>;

Message parse(std::string_view text) {
  Message message;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const auto* const end = p + text.size();
  while (p < end) {
    uint64_t tag = 0;
    p = decode_varint(p, end, &tag);
    if (p == nullptr) ADD_FAILURE() << "a tag is cut off";
    if (p == nullptr) return message;
    Field field;
    if ((tag & 7) == 1) {
      for (int i = 0; i < 8; ++i) field.number |= static_cast<uint64_t>(*p++) << (8 * i);
    } else {
      p = decode_varint(p, end, &field.number);
    }
    if ((tag & 7) == 2) {
      EXPECT_LE(field.number, static_cast<uint64_t>(end - p));
      field.bytes.assign(reinterpret_cast<const char*>(p), field.number);
      p += field.number;
    }
    message.emplace(tag >> 3, field);
  }
  return message;
}

uint64_t number(const Message& message, uint64_t field) {
  const auto at = message.find(field);
  return at == message.end() ? 0 : at->second.number;
}

Message nested(const Message& message, uint64_t field) {
  const auto at = message.find(field);
  return at == message.end() ? Message() : parse(at->second.bytes);
}

/// The events of a Perfetto file, one line each: track, time, what, name.
std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::map<uint64_t, std::string> tracks, names;
  for (const auto& [tag, field] : parse(file)) {
    EXPECT_EQ(tag, 1u);
    const Message packet = parse(field.bytes);
    if (packet.contains(60)) {
      const Message track = nested(packet, 60);
      tracks[number(track, 1)] = track.find(2)->second.bytes;
      continue;
    }
    const Message name = nested(nested(packet, 12), 2);
    if (!name.empty()) names[number(name, 1)] = name.find(2)->second.bytes;
    const Message event = nested(packet, 11);
    constexpr const char* types[] = {"?", "begin", "end", "instant"};
    std::string line = tracks[number(event, 11)] + " @" + std::to_string(number(packet, 8)) + " " +
                       types[number(event, 9)];
    if (event.contains(10)) line += " " + names[number(event, 10)];
    if (event.contains(47)) line += " from " + std::to_string(number(event, 47));
    if (event.contains(48)) line += " to " + std::to_string(number(event, 48));
    if (event.contains(4)) line += " g" + std::to_string(number(nested(event, 4), 3));
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> converted(const Bytes& bytes, const GoroutineTracks& tracks) {
  Reader reader(open_bytes(bytes));
  std::string file;
  PerfettoConverter converter(reader.names(), tracks,
                              [&](std::string_view portion) { file += portion; });
  Event event;
  while (reader.next(event)) converter.add(event);
  converter.finish();
  return lines_of(file);
}

TEST(Perfetto, ATrackForEachP) {
  EXPECT_EQ(converted(call_that_loses_its_p(0).bytes(), {}),
            (std::vector<std::string>{
                "P 0 @100 begin goroutine 7 g7",
                "P 0 @110 instant go from 1 g8",
                "P 0 @120 end",
                "P 0 @120 begin work to 1 g8",
                "P 0 @130 begin system call",
                "P 0 @150 end",
                "P 0 @150 end",
                "without a P @150 instant ready from 2 g7",
                "P 0 @155 begin goroutine 7 to 2 g7",
                "P 0 @160 end",
            }));
}

TEST(Perfetto, GoroutinesHaveTracksOnDemand) {
  std::vector<std::string> own;
  for (const std::string& line :
       converted(call_that_loses_its_p(0).bytes(), {.all = false, .ids = {8}})) {
    if (line.starts_with("8 work")) own.push_back(line);
    EXPECT_FALSE(line.starts_with("7 "));
  }
  EXPECT_EQ(own, (std::vector<std::string>{"8 work @110 begin runnable", "8 work @120 end",
                                           "8 work @120 begin running on P 0", "8 work @130 end",
                                           "8 work @130 begin system call", "8 work @160 end",
                                           "8 work @160 begin runnable", "8 work @160 end"}));
}

TEST(Protobuf, NestedMessagesAreParsedBack) {
  ProtobufWriter out;
  out.number(1, 300);
  out.message(2, [&] {
    out.string(3, "inner");
    out.message(4, [] {});
    out.fixed64(5, ~uint64_t{0});
  });
  const Message message = parse(out.bytes());
  EXPECT_EQ(number(message, 1), 300u);
  EXPECT_EQ(nested(message, 2).find(3)->second.bytes, "inner");
  EXPECT_EQ(number(nested(message, 2), 5), ~uint64_t{0});
  EXPECT_TRUE(nested(message, 2).contains(4));
}

}  // namespace
}  // namespace gofer::tool
