// What the environment says about the runtime, read once at the start:
//   GOFER_DEBUG=key=value,...   model=gm|gmp, guard=madvise|mprotect|none, idlems=N,
//                               scavengems=N, asyncpreemptoff=0|1, membarrier=0|1, procfs=0|1,
//                               overcommit=0|1, schedtrace=N (ms), scheddetail=0|1,
//                               zerostacks=0|1, crash=0|1, panic=abort|exit
//   GOMAXPROCS=N                at most 4096
//   GOFER_STACK_SIZE=N[K|M]     64K to 1024M
#pragma once

#include <cstddef>
#include <cstdint>

namespace gofer::internal {

struct DebugEnv {
  enum class Guard { madvise, mprotect, none };

  bool model_gm = false;           ///< no local queues: everything through the global one
  Guard guard = Guard::madvise;    ///< how the ends of stacks are made to fault
  int64_t idle_ms = 5000;          ///< how long an idle thread lives
  int64_t scavenge_ms = 120'000;   ///< between two passes of the scavenger
  bool async_preempt_off = false;  ///< no goroutine is paused by a signal
  int64_t schedtrace_ms = 0;       ///< 0: off
  bool scheddetail = false;
  bool membarrier = true;    ///< false: as if the kernel had none
  bool procfs = true;        ///< false: as if there were no /proc
  bool overcommit = true;    ///< false: as if vm.overcommit_memory were 2
  bool zero_stacks = false;  ///< a goroutine finds nothing of others on its stack
  bool crash_report = true;  ///< false: signals that mean a crash are not reported
  bool panic_exits = false;  ///< an uncaught exception ends with exit code 2, not by abort()
  int gomaxprocs = 0;        ///< 0: not given
  size_t stack_size = 0;     ///< bytes; 0: not given
};

/// The arguments are the variables' values, or null. What is wrong is told through `complain`, one
/// line for each thing, without line end, and has no effect; the rest counts. Allocates nothing.
DebugEnv parse_debug_env(const char* gofer_debug, const char* gomaxprocs, const char* stack_size,
                         void (*complain)(const char* message));

}  // namespace gofer::internal
