// System calls without libc: the result is the value or -errno, and errno stays as it is, because
// the runtime must not disturb the errno of the goroutine on whose stack it happens to work.
#pragma once

#include <sys/syscall.h>

#include "arch/arch.h"

namespace gofer::internal::os {

using arch::raw_syscall;

}  // namespace gofer::internal::os
