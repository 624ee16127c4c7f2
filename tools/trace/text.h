// Numbers and strings as the commands print them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gofer::tool {

/// Three digits and a unit: "1.23 ms".
std::string duration(int64_t ns);

/// text with control characters, which a trace may have in any string, replaced by '?'. What comes
/// from a file must not steer a terminal.
std::string printable(std::string_view text);

/// text as a JSON string, with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace gofer::tool
