// From the text of an address to addresses.
#pragma once

#include <gofer/context.h>
#include <gofer/net.h>

#include <string_view>
#include <system_error>
#include <vector>

namespace gofer::net {

/// What `text` stands for, best first; passive: to listen at. Never empty without an error. A name
/// is looked up in a goroutine of its own, so that the context can end the wait for it.
std::vector<address> resolve(const context* ctx, std::string_view text, bool passive,
                             std::error_code& ec);

}  // namespace gofer::net
