#include "trace/text.h"

#include <cstdio>

namespace gofer::tool {
namespace {

/// The length of the UTF-8 sequence at the front of text, or 0 if there is none that is valid.
size_t sequence_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond Unicode.
  if (length == 3 && ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f))) return 0;
  if (length == 4 && ((first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f))) return 0;
  return length;
}

}  // namespace

std::string duration(int64_t ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  const auto value = static_cast<double>(ns);
  for (const Unit& unit : units) {
    if (value < unit.ns && unit.ns > 1) continue;
    const double number = value / unit.ns;
    const int digits = unit.ns == 1 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
    char text[64];
    snprintf(text, sizeof text, "%.*f %s", digits, number, unit.name);
    return text;
  }
  return "0 ns";
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // C0 and C1 controls: the latter are 0xc2 and a byte below 0xa0.
    const bool control = length == 0 || first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    const size_t taken = length == 0 ? 1 : length;
    result += control ? "?" : std::string(text.substr(0, taken));
    text.remove_prefix(taken);
  }
  return result;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      result += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    if (first == '"' || first == '\\') result += '\\';
    if (first < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", first);
      result += escape;
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result + '"';
}

}  // namespace gofer::tool
