// Which scheduler the test runs with: ctest has runs with GOFER_DEBUG=model=gm.
#pragma once

#include <cstdlib>
#include <string_view>

namespace gofer::test {

/// Everything goes through the global queue: no local queues, no runnext, no stealing.
inline bool model_gm() {
  const char* value = std::getenv("GOFER_DEBUG");
  const std::string_view debug(value != nullptr ? value : "");
  return debug.find("model=gm") != debug.npos && debug.find("model=gmp") == debug.npos;
}

}  // namespace gofer::test
