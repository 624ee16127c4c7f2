// Gofer's own records: what Go's events have no room for.
//
// They travel in experimental batches with the experiment 1, which Go's tools skip. docs/TRACING.md
// has the layout for writers. In short, the data of a batch are
//
//   version  1 byte: 1
//   record   1 byte: kind in the low five bits, number of arguments in the high three
//            varint: time since the record before it, or since the batch's time
//            varints: the arguments
//
// A record says itself how many arguments it has, so a reader skips kinds that it does not know,
// and arguments that a later writer appends. Go's own batches of experiment 1
// (GODEBUG=traceallocfree=1) begin with the varint of a heap address, whose first byte is 0x80:
// they have no version 1, and are skipped.
#pragma once

#include <cstdint>
#include <string_view>

namespace gofer::tool {

constexpr uint8_t gofer_experiment = 1;
constexpr uint8_t gofer_records_version = 1;

enum class RecordKind : uint8_t {
  steal = 1,     // P of the thief, P of the victim, how many it took, how many it left
  queue,         // P, length of its ring, goroutine in runnext (0: none)
  global_queue,  // its length
  runnext,   // P, goroutine that became its runnext, goroutine that this one displaced (0: none)
  hand_off,  // P, M that gave it up (0: none), M that gets it (0: one that is yet to be started)
  pause,     // goroutine, its M, the P that it had, how: PauseMeans
  pass,      // P, M that is paused, M of the tied goroutine that gets the P, that goroutine
  retake,    // P, M that lost it, why: RetakeReason
  sysmon,    // nanoseconds since the last round, Ps that it took, goroutines that it paused
  counter,   // a string: its name; its value, zigzag
};

enum class PauseMeans : uint8_t { signal, prologue, checkpoint };
enum class RetakeReason : uint8_t { asleep, announced, slice, stop_the_world };

constexpr uint8_t record_byte(RecordKind kind, unsigned arguments) {
  return static_cast<uint8_t>(static_cast<unsigned>(kind) | arguments << 5);
}

/// How many arguments a record of this kind has at least; -1 if the kind is not known.
constexpr int min_record_args(uint8_t kind) {
  constexpr int counts[] = {-1, 4, 3, 1, 3, 3, 4, 4, 3, 3, 2};
  return kind < sizeof counts / sizeof counts[0] ? counts[kind] : -1;
}

constexpr std::string_view record_name(uint8_t kind) {
  constexpr std::string_view names[] = {"?",       "steal",    "queue",  "global queue",
                                        "runnext", "hand-off", "pause",  "pass",
                                        "retake",  "sysmon",   "counter"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

}  // namespace gofer::tool
