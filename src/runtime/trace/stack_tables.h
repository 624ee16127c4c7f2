// The stacks of a generation as tables: names and lines for the addresses of stacks.h.
//
// The tracer's thread does all of this when a generation ends. It allocates, and it looks each
// address up once: what it has found serves later generations and traces, too.
#pragma once

#include <cstdint>

namespace gofer::internal::tracer {

class TableWriter;
struct Used;

/// Strings have numbers from this one on, up to those of messages (tables.cc).
inline constexpr uint64_t first_stack_string = 1u << 17;
inline constexpr uint64_t end_of_stack_strings = 1u << 20;

/// Writes the strings, and then the stacks, that a generation mentions. `pass` is another number
/// for each generation that is written: one of the flight recorder's may be written several times.
void write_stack_strings(TableWriter& out, const Used& used, uint64_t pass);
void write_stacks(TableWriter& out, const Used& used, uint64_t pass);
/// Code was unloaded: what is at an address now may have another name.
void forget_described_stacks();

}  // namespace gofer::internal::tracer
