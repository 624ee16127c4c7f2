#include "runtime/wait/coarse_clock.h"

namespace gofer::internal {

constinit CoarseClock coarse_clock;

}  // namespace gofer::internal
