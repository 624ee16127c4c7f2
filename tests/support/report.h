// Looking at what a child program reported: which traces can be expected, and where.
#pragma once

#include <string>

#include "runtime/base/sanitizer.h"
#include "support/child.h"

namespace gofer::test {

/// Traces name functions and lines only with libdw.
#if defined(GOFER_HAVE_LIBDW)
inline constexpr bool has_symbols = true;
#else
inline constexpr bool has_symbols = false;
#endif

#if defined(GOFER_ASAN)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
#if defined(GOFER_TSAN)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif

/// "<source>:<line> " for the line that the child announced with GOFER_SAY_LINE(name); a text that
/// no trace contains if it did not.
inline std::string announced_line(const ChildResult& child, const std::string& source,
                                  const std::string& name) {
  const std::size_t at = child.out.find(name + "=");
  if (at == std::string::npos) return "the child did not announce " + name;
  const std::size_t digits = at + name.size() + 1;
  return source + ":" + child.out.substr(digits, child.out.find('\n', digits) - digits);
}

/// What the child wrote to stdout as "name=value".
inline std::string value_of(const ChildResult& child, const std::string& name) {
  const std::size_t at = child.out.find(name + "=");
  if (at == std::string::npos) return "(no " + name + ")";
  const std::size_t from = at + name.size() + 1;
  return child.out.substr(from, child.out.find_first_of(" \n", from) - from);
}

}  // namespace gofer::test
