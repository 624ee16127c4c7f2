// The states of a goroutine and the reasons for which it waits.
//
// G::status holds the state. Only the functions in transitions.h change it, and test builds check
// that each change is legal: docs/ARCHITECTURE.md has the table.
//
// `syscall` is never stored. A call that a goroutine announces costs one store (blocking.cc), and
// an M that loses its P in a call does not notice that before it returns. So both leave the status
// at `running`, and true_status() tells the two apart from what is stored anyway: the announcement
// and the P word.
#pragma once

#include <cstdint>

namespace gofer::internal {

struct G;

/// The numbers are Go's: they appear in schedtrace lines and reports.
enum class GStatus : uint8_t {
  idle = 0,       // its record is taken and not filled yet
  runnable = 1,   // in a run queue
  running = 2,    // on an M, which has a P; see true_status() for the exception
  syscall = 3,    // on an M, in a call that it has announced, or without a P
  waiting = 4,    // parked; a waiter record names it
  dead = 6,       // ended, or never begun
  copystack = 8,  // parked, and its unused stack pages are being given back
  preempted = 9,  // paused by a signal or a prologue: tied, in the global queue
};

const char* status_name(GStatus status);

/// What a report says: the stored status, with `syscall` told from `running`. The goroutine may
/// change its state meanwhile.
GStatus true_status(const G* g);

/// Whether docs/ARCHITECTURE.md has this transition of the stored status.
bool is_legal_transition(GStatus from, GStatus to);

/// Changes a status and checks that `from` is what it was and that the transition is legal. The
/// readier of a goroutine does not know whether it is being trimmed: `waiting` stands for
/// `copystack`, too.
void check_transition(G* g, GStatus from, GStatus to);

/// Why a goroutine waits; the texts are Go's.
enum class WaitReason : uint8_t {
  none,
  io_wait,
  chan_receive,
  chan_receive_nil,
  chan_send,
  chan_send_nil,
  select,
  select_no_cases,
  sleep,
  mutex_lock,
  rw_mutex_rlock,
  rw_mutex_lock,
  cond_wait,
  semacquire,
  wait_group_wait,
  panic_wait,
};

const char* wait_reason_text(WaitReason reason);

}  // namespace gofer::internal
