/*
 * Going idle without overlooking work: find_runnable, wake_p, hand_off, and the look-again before an M sleeps.
 *
 * Modelled protocol (after Go's "Worker thread parking/unparking"; names as in src/runtime/procs, and in its callers in
 *   sched/ and threads/: README.md maps them)
 *   Submitter: puts a G into its P's queue (a foreign thread: into the global queue, under sched_lock), then wake_p():
 *     an M spins: done.  Else need_spinning = 1; no P idle: done.  Else spinning 0 -> 1 by CAS, and under sched_lock
 *     an idle P goes to a sleeping M, which starts spinning; no idle P after all: spinning - 1, then need_spinning = 1,
 *     in this order and still under the lock.
 *   M without work: own queue, global queue; spinning, if 2 * spinning < busy Ps: + 1, need_spinning = 0, steal.  Under
 *     sched_lock: global queue again, then the P goes to the idle list; an M that does not spin and reads
 *     need_spinning != 0 after that takes a P back and spins.  A spinning M then does spinning - 1 and looks at every
 *     queue again; if it finds work it takes an idle P and spins; if there is none, need_spinning = 1 under the lock.
 *     Then it sleeps.  A spinning M that found work: spinning - 1, wake_p().
 *   hand_off of a retaken P, under sched_lock: to an M if there is work in its queue or in the global one; else to the idle
 *     list, and if need_spinning is read as 1 after that, a P is taken back and goes to an M that spins.
 *   The M that lost its P takes an idle P when it comes back, or puts its G into the global queue and sleeps.
 *
 * Properties
 *   1. No lost wake-up: when nothing moves any more (all Ms sleep, or run a G that never comes back), there is no
 *      queued G while a P is idle.  Gs may run for ever at any time, so a G that only its own P's M would find counts.
 *   2. spinning is never negative, is 0 when nothing moves, and never exceeds the number of Ms + 1 (a wake_p under way).
 *   3. No M waits for ever otherwise (invalid end states).
 *
 * Memory model: sequentially consistent, every shared access apart, because all accesses of the argument are seq_cst or
 *   follow a locked instruction.  The exception is yield, whose store of the ring's tail may sit in the store buffer
 *   (TSO) while the hint idle_p_count is read: -DYIELDS models it, YIELD_FENCE puts a fence between.
 *
 * Abstracted away: which G (queues are counts; runnext and ring are one); the P word (a retake of a P whose M is
 *   outside the runtime is one step: p_word.pml has it); Ms are not created but taken from a pool of NM, a starter waits for
 *   one; netpoll, timers, the 61st tick, stop-the-world.
 *
 * Sizes: NP Ps (2 or 3), NM Ms (up to 4), LEFT goroutines to be created by goroutines, OUTSIDE by a foreign thread,
 *   RETAKES by sysmon, YIELDS.
 * NO_THREADS: no M can be created.  Then only the global queue is promised to be served, as long as an M is there, and
 *   for that an M looks at it once more when it puts itself on the idle list.
 * Wrong on purpose: NO_LOOK_AGAIN, DECREMENT_AFTER_LOOK, NO_NEED_SPINNING, NO_WAKE_AFTER_SPIN, WAKE_SILENT,
 *   DECREMENT_UNLOCKED, GO_ORDER, LOOK_AGAIN_SILENT and GO_HAND_OFF (with RETAKES), SLEEP_BLINDLY (with NO_THREADS),
 *   YIELDS without YIELD_FENCE.
 */

#ifndef NP
#define NP 2
#endif
#ifndef NM
#define NM 4
#endif
#ifndef LEFT
#define LEFT 2
#endif
#ifndef OUTSIDE
#define OUTSIDE 1
#endif
#ifndef RETAKES
#define RETAKES 0
#endif
#ifndef YIELDS
#define YIELDS 0
#endif
#define CAP 2

#define NIL         NP
#define BIT(i)      (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

byte queue[NP];        /* runnable Gs of a P */
byte late[NP];         /* yielded Gs whose tail store is still in the store buffer of P's M */
byte global;           /* runnable Gs in the global queue */
byte idle_ps;          /* set, under the lock */
byte idle_count;       /* its size, read without the lock */
byte idle_ms;          /* set of sleeping Ms, under the lock */
short spinning;
bit  need_spinning;
bit  lock;

byte next_p[NM];       /* NIL: asleep */
bit  starts_spinning[NM];
byte mp[NM];           /* m.p, NIL if taken */
byte outside;          /* set of Ms that run user code: their P may be retaken */

byte left;             /* Gs that may still be created */
byte yields;

#define LOCK   atomic { lock == 0 -> lock = 1 }
#define UNLOCK lock = 0

inline take_idle_p(p_) {
  if
  :: HAS(idle_ps, 0) -> p_ = 0; idle_ps = idle_ps & ~BIT(0); idle_count--
#if NP > 1
  :: HAS(idle_ps, 1) -> p_ = 1; idle_ps = idle_ps & ~BIT(1); idle_count--
#endif
#if NP > 2
  :: HAS(idle_ps, 2) -> p_ = 2; idle_ps = idle_ps & ~BIT(2); idle_count--
#endif
  :: idle_ps == 0 -> p_ = NIL
  fi
}

inline put_idle_p(p_) {
  idle_ps = idle_ps | BIT(p_);
  idle_count++
}

/* Lock held.  One to run; a share of the others moves to the P's queue while the lock is held. */
inline take_global(p_) {
  global--;
  if :: global != 0 && queue[p_] < CAP -> global--; queue[p_]++ :: else fi
}

inline less_spinning() {
  spinning--;
  assert(spinning >= 0)
}

inline more_spinning() {
  spinning++;
  assert(spinning <= NM + 1)
}

/* Lock held, given up.  The sleeping M with the lowest number will do: Ms are alike. */
inline start_m(p_, spins, m_) {
  atomic {
#ifdef NO_THREADS                      /* no M asleep and none can be made: the P stays idle */
    if
    :: idle_ms == 0 ->
      if :: spins -> less_spinning() :: else fi;
      put_idle_p(p_)
    :: else ->
#endif
      m_ = 0;
      do :: HAS(idle_ms, m_) -> break :: else -> m_++ od;
      idle_ms = idle_ms & ~BIT(m_);
      starts_spinning[m_] = spins;
      next_p[m_] = p_;
      m_ = 0;
#ifdef NO_THREADS
    fi;
#endif
    p_ = 0;
    UNLOCK
  }
}

/* What needs an M waits for the pool to have one: a new thread, which is not in the pool yet. */
#ifdef NO_THREADS
#define LOCK_WITH_POOL LOCK
#else
#define LOCK_WITH_POOL atomic { lock == 0 && idle_ms != 0 -> lock = 1 }
#endif

inline wake_p(p_, m_) {
  if
  :: spinning != 0
  :: spinning == 0 ->
#ifndef NO_NEED_SPINNING
    need_spinning = 1;
#endif
    if
    :: idle_count == 0
    :: idle_count != 0 ->
      if
      :: spinning != 0
      :: atomic { spinning == 0 -> more_spinning() };
        LOCK_WITH_POOL;
        atomic { take_idle_p(p_) };
        if
        :: p_ == NIL ->
#if defined(WAKE_SILENT)
          atomic { less_spinning(); p_ = 0; UNLOCK }
#elif defined(DECREMENT_UNLOCKED)
          atomic { need_spinning = 1; UNLOCK };
          atomic { less_spinning(); p_ = 0 }
#elif defined(GO_ORDER)
          need_spinning = 1;
          atomic { less_spinning(); p_ = 0; UNLOCK }
#else
          atomic { less_spinning() };
          atomic { need_spinning = 1; p_ = 0; UNLOCK }
#endif
        :: else ->
          need_spinning = 0;
          start_m(p_, 1, m_)
        fi
      fi
    fi
  fi
}

inline start_spinning() {
  atomic { more_spinning(); sp = 1 };
  need_spinning = 0
}

proctype M(byte me) {
  byte p, i, m;
  bit sp, found;

  if :: me == 0 -> goto run_g :: else -> goto asleep fi;

find_runnable:
  if
  :: atomic { queue[p] != 0 -> queue[p]--; goto got }
  :: atomic { queue[p] == 0 && late[p] == 0 }
  :: atomic { queue[p] == 0 && late[p] != 0 -> late[p]--; goto got }   /* a processor sees its own stores */
  fi;
  if
  :: global == 0
  :: global != 0 ->
    atomic { lock == 0 -> if :: global != 0 -> take_global(p); goto got :: else fi }
  fi;
  if
  :: sp
  :: !sp ->
    i = spinning;
    atomic { if :: 2 * i < NP - idle_count -> i = 0 :: else -> i = 0; goto give_up fi };
    start_spinning()
  fi;
  do
  :: atomic { i < NP && i == p -> i++ }
  :: atomic { i < NP && i != p && queue[i] == 0 -> i++ }
  :: atomic { i < NP && i != p && queue[i] != 0 -> queue[i]--; i = 0; goto got }
  :: atomic { i == NP -> i = 0; break }
  od;

give_up:
  atomic {
    lock == 0;
    if
    :: global != 0 -> take_global(p); goto got
    :: else -> lock = 1; put_idle_p(p); mp[me] = NIL; p = 0
    fi
  };
  if
  :: !sp && need_spinning != 0 ->
    atomic { take_idle_p(p); mp[me] = p };
    start_spinning();
    UNLOCK;
    goto find_runnable
  :: !sp && need_spinning == 0 -> UNLOCK; goto stop
  :: sp -> UNLOCK
  fi;

#ifndef DECREMENT_AFTER_LOOK
  atomic { sp = 0; less_spinning() };
#endif
#ifndef NO_LOOK_AGAIN
  found = (global != 0);
  do
  :: atomic { i < NP && !found -> found = (queue[i] != 0); i++ }
  :: atomic { i == NP || found -> i = 0; break }
  od;
#endif
#ifdef DECREMENT_AFTER_LOOK
  atomic { sp = 0; less_spinning() };
#endif
  if
  :: found ->
    atomic {
      lock == 0;
      take_idle_p(p); mp[me] = p; found = 0;
      if
      :: p == NIL ->
        p = 0;
#ifndef LOOK_AGAIN_SILENT
        need_spinning = 1;
#endif
        goto stop
      :: else
      fi
    };
    start_spinning();
    goto find_runnable
  :: !found
  fi;

stop:
  atomic {
    lock == 0;
#if defined(NO_THREADS) && !defined(SLEEP_BLINDLY)
    if :: idle_ps != 0 && global != 0 -> take_idle_p(p); mp[me] = p; goto find_runnable :: else fi;
#endif
    idle_ms = idle_ms | BIT(me)
  };
asleep:
end_asleep:
  atomic {
    next_p[me] != NIL;
    p = next_p[me]; next_p[me] = NIL; mp[me] = p;
    sp = starts_spinning[me]; starts_spinning[me] = 0
  };
  goto find_runnable;

got:
  if
  :: !sp
  :: sp ->
    atomic { sp = 0; less_spinning() };
#ifndef NO_WAKE_AFTER_SPIN
    wake_p(i, m)
#endif
  fi;

run_g:                                 /* a G, inside the runtime */
  if
  :: goto find_runnable                /* it ends or parks */
  :: atomic { left > 0 -> left-- };    /* it makes another one ready */
    if
    :: atomic { queue[p] < CAP -> queue[p]++ }
    :: atomic { queue[p] >= CAP -> queue[p]-- }; atomic { lock == 0 -> global = global + 2 }
    fi;
    wake_p(i, m);
    goto run_g
#if YIELDS > 0
  :: atomic { yields > 0 && queue[p] != 0 -> yields--; queue[p]-- };   /* the next G is taken, this one put */
#ifdef YIELD_FENCE
    queue[p]++;
#else
    late[p]++;
#endif
    if
    :: idle_count == 0
    :: idle_count != 0 -> wake_p(i, m)
    fi;
    goto run_g
#endif
  :: atomic { outside = outside | BIT(me); p = 0 }
  fi;

  if
  :: atomic { outside = outside & ~BIT(me); p = mp[me] }
  :: goto end_never_returns
  fi;
  if
  :: p != NIL -> goto run_g
  :: p == NIL -> p = 0
  fi;
  atomic {                             /* lost: an idle P, or queue the G */
    lock == 0;
    take_idle_p(p); mp[me] = p;
    if
    :: p != NIL -> goto run_g
    :: else -> p = 0; global++; idle_ms = idle_ms | BIT(me); goto asleep
    fi
  };

end_never_returns:
  false
}

proctype thread() {
  byte p, m, n;
  do
  :: n < OUTSIDE ->
    atomic { lock == 0 -> global++; n++ };
    wake_p(p, m)
  :: n == OUTSIDE -> break
  od
}

#define CAN_TAKE(m_) (m_ < NM && HAS(outside, m_) && mp[m_ % NM] != NIL)

proctype sysmon() {
  byte p, m, n;
  bit work;

again:
end:
  atomic {
    n < RETAKES && (CAN_TAKE(0) || CAN_TAKE(1) || CAN_TAKE(2) || CAN_TAKE(3));
    if
    :: CAN_TAKE(0) -> p = mp[0]; mp[0] = NIL
    :: CAN_TAKE(1) -> p = mp[1]; mp[1] = NIL
    :: CAN_TAKE(2) -> p = mp[2 % NM]; mp[2 % NM] = NIL
    :: CAN_TAKE(3) -> p = mp[3 % NM]; mp[3 % NM] = NIL
    fi;
    n++
  };
  LOCK_WITH_POOL;
  work = (queue[p] + late[p] != 0 || global != 0);   /* membarrier has drained the buffer of P's M */
  if
  :: work -> work = 0; start_m(p, 0, m)
  :: !work ->
#ifdef GO_HAND_OFF                     /* Go: spin if no P is idle and no M spins, without a look at need_spinning */
    if
    :: idle_count == 0 ->
      if
      :: atomic { spinning == 0 -> more_spinning() };
        need_spinning = 0;
        start_m(p, 1, m);
        goto again
      :: spinning != 0
      fi
    :: idle_count != 0
    fi;
    atomic { put_idle_p(p); p = 0; UNLOCK }
#else
    atomic { put_idle_p(p); p = 0 };
    if
    :: need_spinning == 0 -> UNLOCK
    :: need_spinning != 0 ->
      atomic { take_idle_p(p); more_spinning() };
      need_spinning = 0;
      start_m(p, 1, m)
    fi
#endif
  fi;
  goto again
}

/* Store buffers drain at any time; and property 1. */
proctype hw() {
end:
  do
#if YIELDS > 0
  :: atomic { late[0] != 0 -> late[0]--; queue[0]++ }
#if NP > 1
  :: atomic { late[1] != 0 -> late[1]--; queue[1]++ }
#endif
#endif
  :: atomic {
      timeout ->
      assert(spinning == 0);
#ifdef NO_THREADS
      assert(idle_ps == 0 || idle_ms == 0 || global == 0);
#else
      assert(idle_ps == 0 || (global == 0 && queue[0] == 0 && queue[1] == 0 && queue[NP - 1] == 0));
#endif
      break
    }
  od
}

init {
  byte i;
  atomic {
    left = LEFT;
    yields = YIELDS;
    do :: i < NM -> next_p[i] = NIL; mp[i] = NIL; i++ :: else -> break od;
    i = 1;
    do :: i < NP -> put_idle_p(i); i++ :: else -> break od;
    i = 0;
    mp[0] = 0;
    do :: i < NM -> run M(i); if :: i > 0 -> idle_ms = idle_ms | BIT(i) :: else fi; i++ :: else -> break od;
    i = 0;
#if OUTSIDE > 0
    run thread();
#endif
#if RETAKES > 0
    run sysmon();
#endif
    run hw()
  }
}
