/*
 * The stream of an M: which threads write events into it, and to which generation they belong.  src/runtime/trace/stream.h has
 * the argument.
 *
 * Modelled protocol
 *   The M: plain store writing = 1; load wanted.  1: plain store writing = 0, wait until wanted is 0, begin again.
 *   Otherwise it loads the generation, writes an event of it, and leaves by a plain (release) store writing = 0.
 *   A visitor: takes the lock of visitors; wanted = 1; membarrier; waits until writing is 0; reads what the M has written,
 *   and writes itself; wanted = 0; gives the lock back.
 *   The tracer's thread: a new generation, then a visit, then the old generation is closed.
 *
 * Properties
 *   1. The M and a visitor are never in the stream at the same time, nor are two visitors.
 *   2. A visitor finds all events that the M has written.
 *   3. No event of a closed generation is written.
 *   4. No deadlock (invalid end states).
 *
 * Memory model: x86-TSO.  The M's stores go through a FIFO store buffer, drained at any time by the hardware and by
 *   membarrier.  Visitors' stores are locked instructions, or come before a system call.
 *
 * Wrong on purpose (each must fail): NO_MEMBARRIER, WANTED_LATE, NO_SECOND_LOOK, GENERATION_EARLY, NO_VISITORS_LOCK.
 */

#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef BUF
#define BUF 3
#endif

#define LEAVES 0
#define ENTERS 1
#define WRITES 2

chan buffer = [BUF] of { byte };  /* the M's stores that memory does not have yet */
bit  writing;
bit  wanted;
byte data;        /* events in the stream, as memory has them */
byte generation;
bit  visitors;    /* their lock */
byte closed;      /* generations before this one are */

/* ---- what the properties are about (no part of the protocol) ---- */

byte written;     /* events that were written, in memory or not */
byte inside;      /* how many are in the stream */
byte done;

inline commit(s_) {
  if
  :: s_ == LEAVES -> writing = 0
  :: s_ == ENTERS -> writing = 1
  :: s_ == WRITES -> data++
  fi;
  s_ = 0
}

active proctype Hardware() {
  byte s;
  do
  :: atomic { buffer ? s -> commit(s) }
  :: atomic { done == 3 && empty(buffer) -> break }
  od
}

active proctype M() {
  byte n, g;
  do
  :: n == EVENTS -> break
  :: else ->
#ifdef GENERATION_EARLY
     g = generation;
#endif
again:
     buffer ! ENTERS;
     if
     :: wanted ->
        buffer ! LEAVES;
        wanted == 0;
#ifndef NO_SECOND_LOOK
        goto again
#else
        buffer ! ENTERS
#endif
     :: !wanted -> skip
     fi;
     atomic { assert(inside == 0); inside++ };
#ifndef GENERATION_EARLY
     g = generation;
#endif
     atomic { assert(g >= closed); written++; buffer ! WRITES };
     inside--;
     buffer ! LEAVES;
     n++
  od;
  done++
}

inline visit() {
  byte s_;
#ifndef NO_VISITORS_LOCK
  atomic { visitors == 0 -> visitors = 1 };
#endif
#ifdef WANTED_LATE
  atomic { do :: buffer ? s_ -> commit(s_) :: empty(buffer) -> break od };
  wanted = 1;
#else
  wanted = 1;
#ifndef NO_MEMBARRIER
  atomic { do :: buffer ? s_ -> commit(s_) :: empty(buffer) -> break od };
#endif
#endif
  writing == 0;
  atomic { assert(inside == 0); inside++ };
  assert(data == written);
  atomic { data++; written++ };
  inside--;
  wanted = 0;
  visitors = 0
}

active proctype Taker() {
  visit();
  done++
}

active proctype Tracer() {
  generation = 1;
  visit();
  closed = 1;
  done++
}
