/*
 * Park and ready: a G becomes visible to others only after its context is saved.
 *
 * Modelled protocol
 *   A G that must wait leaves its stack with a commit for what is to be done with it; the M saves the context, goes over
 *   to the next stack (another G's, or g0's), and runs the commit first thing there.
 *   With a lock: the G puts its waiter into the primitive's queue under the primitive's lock and parks with the lock held;
 *     the commit sets the status `waiting` and unlocks.  A waker takes the waiter out under the lock and readies the G
 *     after unlocking.  The primitive here is a counting semaphore.
 *   Without a lock, two parties: a word nil | ready | G.  The waiter consumes `ready`, or parks; the commit does a CAS
 *     nil -> G; if it fails, the wake-up has come: the commit fails and readies the old G.  The waker does a CAS, again
 *     until it succeeds: nil -> ready, or G -> nil and readies that G; `ready` stays.
 *   ready: status waiting -> runnable, then into a run queue, from which any M may take the G at once.
 *
 * Properties
 *   1. No M runs a G whose context is not saved, or that runs already.
 *   2. No G is readied twice: `ready` finds the status waiting, the run queue does not hold the G.
 *   3. No G is lost: when nothing moves any more every G has ended, or waits in the queue of a semaphore at 0, or in the
 *      word while no wake-up lies there.
 *
 * Memory model: sequentially consistent.  The context is stored before the unlock (release) or the CAS that publishes the
 *   G, and loaded after the take from a run queue (acquire), so a stronger one would show nothing else.
 *
 * Abstracted away: the run queue is one set; Gs do any sequence of OPS operations; which registers a context has; P and
 *   its word.  A waiter on a foreign thread's stack is in note.pml.
 *
 * Wrong on purpose: COMMIT_BEFORE_SAVE, STATUS_AFTER_UNLOCK, FAILED_COMMIT_FORGETS, CHECK_THEN_STORE,
 *   EXCHANGE_THEN_CLEAR.
 */

#ifndef NM
#define NM 2
#endif
#ifndef NG
#define NG 3
#endif
#ifndef OPS
#define OPS 2
#endif

#define RUNNABLE 0
#define RUNNING  1
#define WAITING  2
#define DEAD     3

#define NOBODY  NG        /* as a G: none, the M is on g0 */
#define NIL     NG        /* the word's values; a smaller one is a G */
#define READY   (NG + 1)

#define BIT(i)      (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

byte status[NG];
bit  saved[NG];           /* the context is complete in memory */
byte ops[NG];             /* operations left */
byte runq;                /* set of Gs */

bit  lock;                /* of the semaphore */
byte waitq;               /* set of Gs */
byte permits;

byte word = NIL;          /* G 0 waits here, the others wake */
byte signals = 2;         /* wake-ups yet to be made */
bit  pending;             /* property 3: a wake-up that no wait has consumed */

/* Takes any G of a set. */
inline take(set, g_) {
  if
  :: HAS(set, 0) -> g_ = 0
  :: HAS(set, 1) -> g_ = 1
#if NG > 2
  :: HAS(set, 2) -> g_ = 2
#endif
  fi;
  set = set & ~BIT(g_)
}

inline enqueue(g_) {
  assert(!HAS(runq, g_));
  runq = runq | BIT(g_)
}

inline ready(g_) {
  atomic { assert(status[g_] == WAITING); status[g_] = RUNNABLE };
  atomic { enqueue(g_) }
}

inline begin_running(g_) {
  assert(status[g_] == RUNNABLE);
  assert(saved[g_]);
  saved[g_] = 0;
  status[g_] = RUNNING
}

#define NONE   0
#define YIELD  1
#define UNLOCK 2
#define PUBLISH 3
#define END    4

/* What the next stack does for the one left behind. */
inline run_commit() {
  if
  :: commit == YIELD -> status[left] = RUNNABLE; atomic { enqueue(left) }
  :: commit == END -> status[left] = DEAD
  :: commit == UNLOCK ->
#ifdef STATUS_AFTER_UNLOCK
    lock = 0; status[left] = WAITING
#else
    status[left] = WAITING; lock = 0
#endif
  :: commit == PUBLISH ->
    status[left] = WAITING;
#ifdef CHECK_THEN_STORE
    if
    :: word == NIL -> word = left
    :: word != NIL -> atomic { word = NIL; pending = 0; status[left] = RUNNABLE; enqueue(left) }
    fi
#else
    atomic {
      if
      :: word == NIL -> word = left; goto committed
      :: else -> assert(word == READY)
      fi
    };
    atomic { word = NIL; pending = 0 };   /* consumed; the G goes on */
#ifndef FAILED_COMMIT_FORGETS
    status[left] = RUNNABLE;
    atomic { enqueue(left) }
#endif
#endif
  :: commit == NONE
  fi;
committed:
  atomic { commit = NONE; left = 0 }
}

proctype M() {
  byte g = NOBODY;        /* the G on this M */
  byte next = NOBODY, left = 0, commit = NONE, woken = 0;

g0:
end_g0:
  atomic { runq != 0 -> take(runq, g); begin_running(g) };

running:
  if
  :: atomic { ops[g] == 0 -> commit = END }
  :: atomic { ops[g] > 0 -> ops[g]-- };
    if
    :: commit = YIELD
    :: atomic { lock == 0 -> lock = 1 };              /* wait on the semaphore */
      if
      :: permits > 0 -> permits--; lock = 0; goto running
      :: permits == 0 -> waitq = waitq | BIT(g); commit = UNLOCK
      fi
    :: atomic { lock == 0 -> lock = 1 };              /* post */
      if
      :: waitq != 0 ->
        atomic { take(waitq, woken) };
        lock = 0;
        ready(woken)
      :: waitq == 0 -> permits++; lock = 0
      fi;
      woken = 0;
      goto running
    :: g == 0 ->                                      /* wait on the word */
      atomic { if :: word == READY -> word = NIL; pending = 0; goto running :: else fi };
      commit = PUBLISH
    :: atomic { g != 0 && signals > 0 -> signals--;   /* wake */
#ifdef EXCHANGE_THEN_CLEAR
        woken = word; word = READY; if :: woken >= NG -> pending = 1 :: else fi };
      if
      :: woken < NG -> word = NIL; ready(woken)
      :: woken >= NG
      fi;
#else
        woken = word; if :: woken < NG -> word = NIL :: else -> word = READY; pending = 1 fi };
      if
      :: woken < NG -> ready(woken)
      :: woken >= NG
      fi;
#endif
      woken = 0;
      goto running
    fi
  fi;

  /* switch away: the next G if there is one, else g0 */
  left = g;
  if
  :: atomic { runq != 0 -> take(runq, next); begin_running(next) }
  :: true
  fi;
#ifdef COMMIT_BEFORE_SAVE
  atomic { woken = left; run_commit() };
  saved[woken] = 1; woken = 0;
  g = next; next = NOBODY;
#else
  saved[left] = 1;
  atomic { g = next; next = NOBODY };
  run_commit();
#endif
  if
  :: g == NOBODY -> goto g0
  :: g != NOBODY -> goto running
  fi
}

proctype watcher() {
  byte i;
end:
  atomic {
    timeout ->
    assert(runq == 0 && lock == 0);
    assert(waitq == 0 || permits == 0);
    do
    :: i < NG ->
      assert(status[i] == DEAD
        || (status[i] == WAITING && HAS(waitq, i) && word != i)
        || (status[i] == WAITING && !HAS(waitq, i) && word == i && !pending));
      i++
    :: i == NG -> break
    od
  }
}

init {
  byte i;
  atomic {
    do
    :: i < NG -> status[i] = RUNNABLE; saved[i] = 1; ops[i] = OPS; runq = runq | BIT(i); i++
    :: i == NG -> break
    od;
    i = 0;
    do :: i < NM -> run M(); i++ :: i == NM -> break od;
    i = 0;
    run watcher()
  }
}
