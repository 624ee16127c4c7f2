/*
 * The gate: when a slice ends, does the P go to a fresh goroutine, which takes a thread more, or to one that waits tied
 * to its own thread?  src/runtime/procs/thread_gate.h has the rules.
 *
 * Modelled protocol
 *   sysmon's rounds are the steps.  In a round each P uses up one slice: its goroutine ends, or it was in vain.
 *   Tied goroutines have a room (ROOM).  It is full when as many wait (crowded).
 *   The clock counts slices while the room is full, since a goroutine that had been paused was last done.  It is 0 while
 *   the room is not full.  The room grows by one place per GROW slices of each P.
 *   End of a slice: a fresh goroutine begins if tied < room + growth and it is its turn.  While the room is full it is
 *   its turn when the goroutine that is paused had been paused before; else a tied one goes first.  Otherwise a rotation: a
 *   tied one follows, by turns the oldest of all and the first in the queue.
 *   Overdue: with OVERDUE, a fresh goroutine begins at the end of a slice also if none has begun on this P for so many
 *   slices, times 1 + (tied - room) / STEP if more are tied than have room (fresh_overdue in round.cc).
 *   Natural end: after a goroutine that had been paused, a tied one follows while the room is full; and so it does after
 *   LOOK others (60 in the code).
 *   A short ticker may be woken before any slice.  It interrupts the goroutine that runs, if tied < room + growth + EXTRA,
 *   parks at once, and the interrupted one goes on; or, while the room is not full, a fresh one begins.
 *   With WORKERS, goroutines that compute until they are paused, park and are woken again go on beside all: they may set
 *   the clock back before any slice, and every other goroutine that begins because one is overdue may be one of them.
 *
 * Goroutines, in the order of their start: TASKS that need 1 to LENGTH slices each; SPINNERS that wait for a flag; with
 *   SETTER the one that sets it, last.  With TICKER the ticker beside them.
 *
 * Properties
 *   1. Tasks only: the clock of a P never exceeds LONGEST, and never more than ROOM + MOST wait tied.  Both follow from
 *      LENGTH, not from the number of tasks.
 *   2. Places that were added in a stall are given back: each end of a goroutine that had been paused takes one.
 *   3. The setter runs, in at most ROUNDS rounds; with OVERDUE also beside WORKERS.
 *   4. A P is without a goroutine only when none waits, and all tasks end.
 *
 * Abstracted away
 *   - Fresh goroutines wait in one queue.  Slices have one length; whether tied ones are likely to be done soon
 *     (only_hogs) is a free choice at any time.  The growth is linear.
 *   - Which goroutine follows one that ends is a free choice where the place of the goroutine in the queues decides.
 *   - Goroutines that spin go after tied ones that do not; here no goroutine is known to spin.
 *   - The ticker and the workers use no time but a slice that is taken for one of them; workers take no room.  The core on which a thread was last plays no role.
 *   - Sleepers in calls and their rooms are left out, and so are the threads themselves.
 *
 * Wrong on purpose (each must fail): NO_GROWTH, ANY_PROGRESS_RESETS, CROWD_FIRST, NO_OLDEST, KEEP_GROWTH, NO_SHRINK;
 *   and WORKERS without OVERDUE.
 */

#ifndef NP
#define NP 1
#endif
#ifndef ROOM
#define ROOM 2
#endif
#ifndef GROW
#define GROW 4
#endif
#ifndef LOOK
#define LOOK 2
#endif
#ifndef EXTRA
#define EXTRA 1
#endif
#ifndef TASKS
#define TASKS 0
#endif
#ifndef SPINNERS
#define SPINNERS 0
#endif
#ifndef LENGTH
#define LENGTH 1
#endif
#ifndef MOST
#define MOST 200
#endif
#ifndef LONGEST
#define LONGEST 200
#endif
#ifndef STEP
#define STEP 2
#endif
#ifdef SETTER
#define ALL (TASKS + SPINNERS + 1)
#else
#define ALL (TASKS + SPINNERS)
#endif
#define NIL ALL
#define LAST_CLOCK 250

chan tied = [ALL + 1] of { byte };
byte on[NP];           /* the goroutine that runs there, or NIL */
byte fresh;            /* the next that begins; ALL: all have begun */
byte used[ALL + 1];    /* slices of a task */
bit  paused[ALL + 1];  /* it has been paused, ever */
byte clock;
bit  turn;
byte ended;            /* tasks */
#ifdef OVERDUE
byte since[NP];        /* slices since a fresh one began there, while some wait */
bit  taken[NP];        /* the latest overdue one that began there was a worker */
#endif
byte row[NP];          /* fresh ones that followed one upon the other, while the room is full */

/* ---- what the properties are about (no part of the protocol) ---- */

byte allowed;          /* places: the room, and those that stalls have added and that were not given back yet */
#ifdef SETTER
byte rounds;
#endif

#define CROWDED (len(tied) >= ROOM)
#ifdef NO_GROWTH
#define GROWN 0
#else
#define GROWN (clock / NP / GROW)
#endif

#ifdef OVERDUE
#define BEYOND (len(tied) > ROOM -> len(tied) - ROOM : 0)
#define IS_OVERDUE(p_) (since[p_] >= OVERDUE * (1 + BEYOND / STEP))
#else
#define IS_OVERDUE(p_) 0
#endif

#define IS_TASK(g_) ((g_) < TASKS)

inline progress() {
#ifndef KEEP_GROWTH
  clock = 0
#else
  skip
#endif
}

inline pause(g_) {
  paused[g_] = 1;
  tied ! g_
}

inline begin_fresh(p_) {
  assert(fresh < ALL);
  on[p_] = fresh;
  fresh++
#ifdef OVERDUE
  ; since[p_] = 0;
  taken[p_] = 0
#endif
}

/* One more waits tied than the rooms allow, or a worker does. */
inline begin_overdue(p_, g_) {
#if defined(OVERDUE) && defined(WORKERS)
  if
  :: !taken[p_] -> taken[p_] = 1; since[p_] = 0
  :: pause(g_); begin_fresh(p_)
  fi;
#else
  pause(g_);
  begin_fresh(p_);
#endif
  if :: len(tied) > allowed -> allowed = len(tied) :: else fi
}

/* The oldest but the caller's own, which was paused just now. */
inline take_oldest(p_, own) {
  i = 0;
  do
  :: i != own && tied ?? [eval(i)] -> break
  :: else -> i++
  od;
  tied ?? eval(i);
  on[p_] = i;
  i = 0
}

inline take_tied(p_, own) {
  if
  :: CROWDED -> turn = 1 - turn
  :: else
  fi;
  if
#ifndef NO_OLDEST
  :: CROWDED && turn -> take_oldest(p_, own)
  :: !(CROWDED && turn) -> tied ? on[p_]
#else
  :: tied ? on[p_]
#endif
  fi
}

/* The P looks for work; after_paused: the goroutine that is done had been paused. */
inline find_work(p_, after_paused) {
  if
  :: fresh == ALL && len(tied) == 0 -> on[p_] = NIL
#ifdef NO_SHRINK
  :: fresh < ALL
#else
  :: fresh < ALL && !(CROWDED && (after_paused || row[p_] == LOOK))
#endif
    -> begin_fresh(p_); if :: CROWDED && row[p_] < LOOK -> row[p_]++ :: else fi
#ifdef NO_SHRINK
  :: fresh == ALL && len(tied) > 0
#else
  :: len(tied) > 0
#endif
    -> row[p_] = 0; take_tied(p_, NIL)
  fi
}

inline end_slice(p_) {
  g = on[p_];
#ifdef OVERDUE
  if
  :: fresh == ALL -> since[p_] = 0
  :: fresh < ALL && since[p_] < LAST_CLOCK -> since[p_]++
  :: else
  fi;
#endif
  if :: CROWDED -> by_turns = 1 :: !CROWDED -> by_turns = 0 :: !CROWDED -> by_turns = 1 fi;
  if
  :: fresh == ALL && len(tied) == 0            /* none waits */
  :: fresh == ALL && len(tied) > 0 -> pause(g); take_tied(p_, g)
#ifdef CROWD_FIRST
  :: fresh < ALL && len(tied) < ROOM + GROWN && !CROWDED && (!by_turns || len(tied) == 0 || paused[g]) ->
#else
  :: fresh < ALL && len(tied) < ROOM + GROWN && (!by_turns || len(tied) == 0 || paused[g]) ->
#endif
    pause(g); begin_fresh(p_)
  :: fresh < ALL && len(tied) >= ROOM + GROWN && IS_OVERDUE(p_) && (!by_turns || len(tied) == 0 || paused[g]) ->
    begin_overdue(p_, g)
  :: else ->
    if
    :: len(tied) > 0 -> pause(g); take_tied(p_, g)
    :: else
    fi
  fi;
  g = 0; by_turns = 0
}

inline tick(p_) {
  if
  :: skip
#ifdef WORKERS
  :: clock = 0
#endif
#ifdef TICKER
  :: len(tied) < ROOM + GROWN + EXTRA ->
    if
    :: paused[on[p_]] = 1
    :: !CROWDED && fresh < ALL -> pause(on[p_]); begin_fresh(p_)
    fi;
#ifdef ANY_PROGRESS_RESETS
    clock = 0
#endif
#endif
  fi
}

inline compute(p_) {
  g = on[p_];
  if :: CROWDED && clock < LAST_CLOCK -> clock++ :: else fi;
  if :: ROOM + GROWN > allowed -> allowed = ROOM + GROWN :: else fi;
  if
  :: IS_TASK(g) ->
    was = paused[g]; used[g] = 0; paused[g] = 0; ended++; g = 0;
    if
    :: was -> progress(); if :: allowed > ROOM -> allowed-- :: else fi
    :: else
    fi;
    find_work(p_, was);
    was = 0
  :: !IS_TASK(g) || used[g] + 1 < LENGTH ->
    if :: IS_TASK(g) -> used[g]++ :: else fi;
    g = 0;
    end_slice(p_)
  fi;
  if :: !CROWDED -> progress() :: else fi;
  assert(clock <= LONGEST * NP);
  assert(len(tied) <= ROOM + MOST);
  assert(len(tied) <= allowed)
}

active proctype sysmon() {
  byte p, g, i;
  bit was, by_turns;

  d_step {
    allowed = ROOM;
    p = 0;
    do
    :: p < NP -> on[p] = p; p++
    :: else -> break
    od;
    fresh = NP;
    p = 0
  };
  do
  :: atomic {
      p < NP ->
#ifdef SETTER
      if :: fresh == ALL -> goto over :: else fi;
#endif
      if
      :: on[p] != NIL -> tick(p); compute(p)
      :: else -> find_work(p, 0)
      fi;
      p++
    }
  :: atomic {
      p == NP -> p = 0;
#ifdef SETTER
      rounds++;
      assert(rounds <= ROUNDS)
#else
      if
      :: ended == TASKS -> goto over
      :: else
      fi
#endif
    }
  od;
over:
  assert(ended == TASKS || fresh == ALL)
}
