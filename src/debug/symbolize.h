// From an address in code to the functions, the file and the line to which it belongs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gofer::internal {

struct SymbolFrame {
  std::string name;  // short; empty if it is unknown
  std::string file;  // empty if no line is known
  int line = 0;
  bool inlined = false;         // inlined into the next frame of the list
  std::string symbol;           // the whole linker symbol, empty if inlined or unknown
  uintptr_t function = 0;       // where the function begins, 0 if inlined or unknown
  std::string module;           // file of the program or library
  uintptr_t module_offset = 0;  // as addr2line wants it
};

/// The function at `address` and, before it, the functions that were inlined there, innermost
/// first. Never empty. Uses libdw if it was built in, otherwise the dynamic linker's symbols.
/// Allocates. One thread at a time.
std::vector<SymbolFrame> symbolize(uintptr_t address);

}  // namespace gofer::internal
