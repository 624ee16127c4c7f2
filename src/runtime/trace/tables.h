// What events name by numbers: texts, and the functions of goroutines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/goroutines/g.h"
#include "runtime/goroutines/status.h"
#include "runtime/trace/stacks.h"

namespace gofer::internal::tracer {

// The texts that every generation has.
inline constexpr uint64_t yield_string = 1;
inline constexpr uint64_t preempted_string = 2;
inline constexpr uint64_t stop_string = 3;
inline constexpr uint64_t first_reason_string = 4;

inline uint64_t reason_string(WaitReason reason) {
  return first_reason_string + static_cast<uint64_t>(reason);
}

/// Marks what the generation mentions.
inline void mark_in(atomic<uint64_t> (&used_in)[2], uint64_t generation) {
  atomic<uint64_t>& used = used_in[generation & 1];
  if (used.load(relaxed) != generation) used.store(generation, release);
}

/// The stack with which a goroutine begins: one frame, the function that it runs. 0: the table is
/// full.
uint64_t stack_of_entry(const G* g);
/// The call of `go` that has created it, where stacks.h has no stack.
uint64_t stack_of_creator(const G* g);
/// The generation mentions this stack.
void mark_used(uint64_t stack, uint64_t generation);

/// A text that may come again. 0 if it is empty, or if there are too many: then new_string has it.
uint64_t name_string(std::string_view text, uint64_t generation);
/// A text that does not.
uint64_t new_string(std::string_view text, uint64_t generation, uint64_t time);
/// No thread writes texts of generations before `open` any more: what there is of them is retired.
void collect_texts(uint64_t open);

/// What of the tables one generation mentions, a bit for each.
inline constexpr size_t frame_places = 1u << 14;
inline constexpr size_t name_places = 1u << 12;
struct Used {
  uint64_t frames[frame_places / 64];
  uint64_t names[name_places / 64];
  uint64_t stacks[most_stacks / 64 + 1];  // by Stack::id
};
inline bool has(const uint64_t* bits, size_t i) { return (bits[i / 64] >> i % 64 & 1) != 0; }

/// Of a generation that is closed, until the one after the next is open.
void note_used(uint64_t generation, Used& used);
/// Writes the tables of a generation, in whole batches, by calls of f. Allocates, to find the names
/// of functions that no generation has named before.
void write_tables(const Used& used, uint64_t generation, uint64_t time,
                  void (*f)(const void* bytes, size_t size));

}  // namespace gofer::internal::tracer
