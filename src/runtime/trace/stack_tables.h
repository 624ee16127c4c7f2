// The stacks of a generation as tables: names and lines for the addresses of stacks.h.
//
// The tracer's thread does all of this when a generation ends. It allocates, and it looks each
// address up once: what it has found serves later generations and traces, too.
#pragma once

#include <cstdint>

namespace gofer::internal::tracer {

class TableWriter;

/// Strings have numbers from this one on, up to those of messages (tables.cc).
inline constexpr uint64_t first_stack_string = 1u << 17;
inline constexpr uint64_t end_of_stack_strings = 1u << 20;

/// Writes the strings, and then the stacks, that the generation mentions.
void write_stack_strings(TableWriter& out, uint64_t generation);
void write_stacks(TableWriter& out, uint64_t generation);

}  // namespace gofer::internal::tracer
