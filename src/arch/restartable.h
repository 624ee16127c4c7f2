// Calls that may be made again as if nothing had happened: those that only wait, and those that
// transfer, because one that has transferred anything does not fail. SA_RESTART does not cover them
// when they have a time limit. Not among them: those of which the kernel has done a part (connect).
// For the ports: not every architecture has every one of these calls.
#pragma once

#include <sys/syscall.h>

namespace gofer::internal::arch {

inline bool may_be_made_again(long call) {
  switch (call) {
#ifdef SYS_poll
    case SYS_poll:
#endif
#ifdef SYS_select
    case SYS_select:
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
      return true;
    default:
      return false;
  }
}

}  // namespace gofer::internal::arch
