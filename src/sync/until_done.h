#pragma once

#include "runtime/wait/park.h"

namespace gofer {
class context;
}

namespace gofer::internal {

/// The limit of a wait that ends when the context is done.
WaitLimit until_done(const context& ctx);

}  // namespace gofer::internal
