#pragma once

#include "runtime/wait/park.h"

namespace gofer {
class context;
}

namespace gofer::internal {

/// The limit of a wait that ends when the context is done.
WaitLimit until_done(const context& ctx);

/// A context derived from ctx that is also done when `other` is done.
context done_with_either(const context& ctx, const context& other);

}  // namespace gofer::internal
