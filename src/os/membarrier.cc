#include "os/membarrier.h"

#include <linux/membarrier.h>

#include "os/raw_syscall.h"

namespace gofer::internal::os {

bool membarrier_register() {
  return raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

bool membarrier() { return raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0; }

}  // namespace gofer::internal::os
