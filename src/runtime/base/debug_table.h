// Tables for debuggers: where the fields lie that tools/gdb reads.
//
// A debugger cannot rely on debug information, because an installed library may have none. So each
// file that owns such fields exports a table of their offsets. The compiler computes them, so a
// field that moves takes its entry along. The debugger finds a table by its symbol and an entry by
// its name, so entries may be added, and their order does not matter. If the meaning of an entry
// changes, its name must change, too; the debugger then says which entry it misses. An empty name
// ends a table.
//
// The attributes keep a table in programs that are linked with --gc-sections, although no code
// refers to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gofer::internal {

struct DebugEntry {
  char name[32];
  uint64_t value = 0;            // an offset, a size, a number or a mask
  const void* object = nullptr;  // or the address of an object
};

/// An entry whose name has two parts.
constexpr DebugEntry debug_entry(const char* prefix, const char* name, uint64_t value) {
  DebugEntry entry{{}, value};
  size_t at = 0;
  for (; *prefix != '\0'; ++prefix) entry.name[at++] = *prefix;
  for (; *name != '\0'; ++name) entry.name[at++] = *name;
  return entry;
}

}  // namespace gofer::internal

/// Begins the definition of a table: GOFER_DEBUG_TABLE(gofer_debug_x) = {{"X.y", 8}, {}};
#define GOFER_DEBUG_TABLE(table)                                                       \
  extern "C" [[gnu::visibility("default")]] const gofer::internal::DebugEntry table[]; \
  extern "C" [[gnu::used, gnu::retain]] constinit const gofer::internal::DebugEntry table[]

/// The entry of a field, named "<type>.<field>".
#define GOFER_DEBUG_FIELD(type, field) \
  { #type "." #field, offsetof(type, field) }
/// The entry of a type's size, named "sizeof(<type>)".
#define GOFER_DEBUG_SIZE(type) \
  { "sizeof(" #type ")", sizeof(type) }
