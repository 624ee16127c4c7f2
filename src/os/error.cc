#include "os/error.h"

namespace gofer::internal::os {

[[gnu::noinline]] int last_error() noexcept {
  asm volatile("");
  return errno;
}

}  // namespace gofer::internal::os
