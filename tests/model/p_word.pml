/*
 * The P word (src/runtime/procs/p_word.h): who owns a processor (P), decided by one word.
 *
 * Modelled protocol
 *   A word per P: {state, owner M, generation}; states none | running | retaking | lost.  An M remembers p_word,
 *   the exact value its P's word has while it owns the P.
 *   Runtime entry of an M: plain store in_runtime = 1, then load in_doubt.  0: inside.  Else in_doubt = 0 by an exchange,
 *   and a look at the word.  Equal to p_word: inside.  `retaking` with p_word's owner and generation: a CAS back to running
 *   keeps the P.  Anything else, or a failed CAS: the slow path, which decides again under sched_lock.
 *   Leaving is a plain (release) store in_runtime = 0.
 *   A taker (sysmon for one P, stop-the-world for all): CAS running -> retaking, in_doubt = 1, membarrier, read in_runtime;
 *   0: CAS retaking -> lost, and the P is the taker's; 1: CAS retaking -> running, failure is fine.
 *   A lost P is handed to a waiting M, or goes to the idle list, or (stop-the-world) is given back to the M it was
 *   taken from, by restoring p_word, as long as that M has not noticed: m.p still names the P, under sched_lock.
 *   The signal handler of an M outside the runtime takes its own P with the same CAS, and then waits for a P.
 *   A paused M may be released without a P, and an idle P may be given silently to an M that computes without one.
 *
 * Properties
 *   1. The data of a P are never used by two parties at once (`use`); an M's use lasts until its in_runtime = 0 has
 *      reached memory, so data written before the release store are covered too.
 *   2. No P is lost or has two holders (`INV`): the M that the word names, and that knows it; or the idle list; or the
 *      stopped world; or the taker that won the CAS.  Never does an M wait while a P is idle.
 *      With -DJUDGE: sysmon takes a P only from an M that it found asleep, never from one that merely followed it.
 *   3. No deadlock (invalid end states); with -DLIVE, every stop-the-world ends (LTL, weak fairness).
 *
 * Memory model: x86-TSO, as far as the protocol can see it.  in_runtime goes through a FIFO store buffer of BUF entries
 *   per M, drained at any time by the hardware, by every locked instruction of that M, and by membarrier (of each M apart,
 *   not of all at one instant).  All other stores are CASes, or are made under sched_lock, or before a wake-up.
 *
 * Abstracted away
 *   - A section under sched_lock is one step when the unlocked parties can see at most one of its stores; the sections
 *     that make several (silent give, end of stop-the-world) hold the lock over several steps.
 *   - The first load of the word by a taker is one step with its CAS: a stale value makes a CAS that fails.  With JUDGE
 *     sysmon's are three steps: it loads the word, asks the kernel whether that owner sleeps, and its CAS is from that word.
 *   - The wait queue is a set: any waiter may be picked.  What runs on an M, the run queues and the futexes are left out.
 *   - Generations count modulo NGEN.  With NGEN = 1 there are none.
 *
 * Sizes: NM machines, NP processors.  Options: HANDLER, RELEASE_PAUSED, SILENT, TAKER_LOCK, JUDGE, LIVE.
 * Wrong on purpose (each must fail): NO_MEMBARRIER, PLAIN_RECHECK, GIVE_BACK_UNLOCKED, SHARED_RETAKING,
 *   RECHECK_EQUAL_ONLY, NIL_WORD_IS_NONE (with SILENT and HANDLER), SYSMON_IGNORES_STOP, M_IGNORES_STOP (with LIVE),
 *   DOUBT_FIRST, DOUBT_LATE, TRUST_LATE, RELEASED_WITHOUT_DOUBT (with HANDLER and RELEASE_PAUSED), JUDGE_LATER (with
 *   JUDGE).
 */

#ifndef NM
#define NM 2
#endif
#ifndef NP
#define NP 1
#endif
#ifndef NGEN
#define NGEN 2
#endif
#ifndef BUF
#define BUF 2
#endif

/* ---- the word ---- */

#define NONE  0
#define RUN   1
#define LOST  2
#define RET_S 3      /* retaking, by sysmon */
#if defined(SHARED_RETAKING) || defined(TAKER_LOCK)
#define RET_W RET_S
#else
#define RET_W 4      /* retaking, by stop-the-world: a taker must not win with the other one's `retaking` */
#endif

#define W(st, own, g) ((st) + 5 * ((own) + NM * (g)))
#define ST(w)         ((w) % 5)
#define OWN(w)        (((w) / 5) % NM)
#define AS(st, w)     ((w) - ST(w) + (st))
#define IS_RET(w)     (ST(w) >= RET_S)
#define HELD(w)       (ST(w) == RUN || IS_RET(w))

#define NIL         NP
#ifdef NIL_WORD_IS_NONE
#define NO_WORD     NONE
#else
#define NO_WORD     250         /* p_word of an M without a P: no word ever has this value, `none` neither */
#endif
#define BIT(i)      (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define ALL         (BIT(NP) - 1)

byte word[NP];
byte gen[NP];          /* the last generation handed out; written under sched_lock */
byte mp[NM];           /* m.p and m.p_word: written by their M, or under sched_lock while the M has no P */
byte mw[NM];
bit  flag[NM];         /* m.in_runtime as memory has it */
bit  doubt[NM];        /* m.in_doubt */
byte sb_n[NM];         /* the store buffer of flag[m]: number of entries, values with the oldest in bit 0 */
byte sb_v[NM];

bit  lock;             /* sched_lock; a section of one step just waits for lock == 0 */
byte idle;             /* sets of Ps: idle list, and those the stopped world has */
byte bag;
byte waitq;            /* sets of Ms: waiting for a P, and computing without one (marked under sched_lock) */
byte adrift;
bit  stopping;
#ifdef TAKER_LOCK
bit  taker_lock;
#endif
#ifdef JUDGE
byte asleep;           /* set of Ms that sleep in user code, as the kernel knows it */
#endif

/* ---- what the properties are about (no part of the protocol) ---- */

#define SYSMON (NM + 1)
#define STW    (NM + 2)

byte user[NP];         /* party that uses the data of P: M + 1, SYSMON, STW */
byte uses[NP];
byte at[NM];           /* the P whose use ends when the next in_runtime = 0 of M reaches memory */
byte taken[NP];        /* party that won the CAS to lost */

inline use(p_, who) {
  assert(uses[p_] == 0 || user[p_] == who);
  user[p_] = who;
  uses[p_]++
}

inline unuse(p_) {
  assert(uses[p_] > 0);
  uses[p_]--;
  if :: uses[p_] == 0 -> user[p_] = 0 :: else fi
}

/* ---- store buffers ---- */

inline commit_one(m_) {
  flag[m_] = sb_v[m_] & 1;
  if :: flag[m_] == 0 -> unuse(at[m_]) :: else fi;
  sb_v[m_] = sb_v[m_] >> 1;
  sb_n[m_]--
}

inline drain(m_) {
  do :: sb_n[m_] > 0 -> commit_one(m_) :: else -> break od
}

inline put_flag(m_, v) {
  atomic { sb_n[m_] < BUF -> sb_v[m_] = sb_v[m_] | ((v) << sb_n[m_]); sb_n[m_]++ }
}

inline membarrier(m_) {
#ifdef NO_MEMBARRIER
  skip
#else
  atomic { drain(m_) }
#endif
}

/* ---- under sched_lock ---- */

inline some_p(set, p_) {
  if
  :: HAS(set, 0) -> p_ = 0
#if NP > 1
  :: HAS(set, 1) -> p_ = 1
#endif
  fi
}

inline some_m(set, m_) {
  if
  :: HAS(set, 0) -> m_ = 0
  :: HAS(set, 1) -> m_ = 1
#if NM > 2
  :: HAS(set, 2) -> m_ = 2
#endif
  fi
}

inline new_owner(p_, m_) {
  gen[p_] = (gen[p_] + 1) % NGEN;
  mp[m_] = p_;
  mw[m_] = W(RUN, m_, gen[p_]);
  word[p_] = mw[m_];
  taken[p_] = 0
}

/* The M that a lost P was taken from has not noticed. */
#define UNNOTICED(p_) (ST(word[p_]) == LOST && mp[OWN(word[p_])] == (p_) && mw[OWN(word[p_])] == AS(RUN, word[p_]))

/* A taker parts with P: the M it was taken from is on its own from here. */
inline set_adrift(p_) {
  if :: UNNOTICED(p_) -> adrift = adrift | BIT(OWN(word[p_])) :: else fi
}

/* P goes to the stopped world, or to a waiter, or to the idle list. */
inline dispose(p_, m_) {
  if
  :: waitq != 0 && !stopping -> some_m(waitq, m_); waitq = waitq & ~BIT(m_); new_owner(p_, m_); m_ = 0
  :: waitq == 0 && !stopping -> idle = idle | BIT(p_); word[p_] = NONE; taken[p_] = 0
  :: stopping -> bag = bag | BIT(p_); word[p_] = NONE; taken[p_] = 0
  fi
}

/* ---- machines ---- */

proctype M(byte me) {
  byte p, w, w0, m;

user_code:
  if
  :: goto enter
#ifdef HANDLER
  :: goto handler
#endif
#ifdef JUDGE
  :: asleep = asleep | BIT(me); asleep = asleep & ~BIT(me); goto user_code
#endif
  fi;

enter:
  put_flag(me, 1);
  if
  :: atomic { doubt[me] == 0 -> p = mp[me]; assert(p != NIL); goto inside }
  :: doubt[me] == 1
  fi;
#ifndef TRUST_LATE
  atomic { drain(me); doubt[me] = 0 };
#endif
#ifdef SILENT                 /* others may write m.p and m.p_word: three loads.  Else they are one step. */
  p = mp[me];
  w0 = mw[me];
#endif
  atomic {
#ifndef SILENT
    p = mp[me];
    w0 = mw[me];
#endif
    if :: p == NIL -> goto slow :: else fi;
    w = word[p];
    if
#ifdef TRUST_LATE
    :: w == w0 -> goto trust
#else
    :: w == w0 -> goto inside
#endif
    :: IS_RET(w) && AS(RUN, w) == w0
    :: else -> goto slow
    fi
  };
  atomic {                    /* retaking: one CAS decides */
#ifdef PLAIN_RECHECK
    word[p] = w0;
    goto inside;
#else
    drain(me);
    if
    :: word[p] == w -> word[p] = w0; goto inside
    :: else                   /* taken, or given back: the slow path finds out */
    fi
#endif
  };

#ifdef TRUST_LATE
trust:
  atomic { drain(me); doubt[me] = 0; goto inside };
#endif

slow:
  atomic {
    lock == 0;
    drain(me);
    p = mp[me]; w = 0; w0 = 0;
    if
    :: p != NIL && word[p] == mw[me] -> goto inside
#ifndef RECHECK_EQUAL_ONLY
    :: p != NIL && IS_RET(word[p]) && AS(RUN, word[p]) == mw[me] -> word[p] = mw[me]; goto inside
#endif
    :: else
    fi;
    adrift = adrift & ~BIT(me);
    mp[me] = NIL; mw[me] = NO_WORD;
    goto get_p_locked
  };

get_p:
  atomic {
    lock == 0;
get_p_locked:
    if
    :: idle != 0 -> some_p(idle, p); idle = idle & ~BIT(p); new_owner(p, me); goto inside
    :: else -> p = 0; waitq = waitq | BIT(me)
    fi
  };
  atomic { !HAS(waitq, me) -> p = mp[me] };

inside:
  atomic {
    use(p, me + 1); at[me] = p; w = 0; w0 = 0
  };
  if
#ifdef M_IGNORES_STOP
  :: p = 0; goto leave
#else
  :: !stopping -> p = 0; goto leave
#endif
  :: skip                     /* park, yield, stop: the word may be `retaking`, the store goes over it */
  fi;
  atomic {
    lock == 0;
    drain(me);
    mp[me] = NIL; mw[me] = NO_WORD;
    unuse(p);
    dispose(p, m);
    p = 0
  };
  goto get_p;

leave:
  put_flag(me, 0);
  goto user_code;

#ifdef HANDLER
handler:                      /* in_runtime is 0 as this thread sees it; it stays 0 */
#ifdef SILENT
  p = mp[me];
  w0 = mw[me];
#endif
  atomic {
#ifndef SILENT
    p = mp[me];
    w0 = mw[me];
#endif
    drain(me);
    if
    :: p != NIL && word[p] == w0
    :: p != NIL && IS_RET(word[p]) && AS(RUN, word[p]) == w0
    :: else -> p = 0; w0 = 0; goto user_code
    fi;
    word[p] = AS(LOST, w0); taken[p] = me + 1; w0 = 0;
    use(p, me + 1)
  };
  atomic {
    lock == 0;
    unuse(p);
    mp[me] = NIL; mw[me] = NO_WORD;
    dispose(p, m);
    p = 0;
    if
    :: idle != 0 && waitq == 0 ->
      some_p(idle, p); idle = idle & ~BIT(p); new_owner(p, me); p = 0; goto user_code
    :: else -> waitq = waitq | BIT(me)
    fi
  };
  if
  :: !HAS(waitq, me)
#ifdef RELEASE_PAUSED
  :: atomic { lock == 0 && HAS(waitq, me) -> waitq = waitq & ~BIT(me); adrift = adrift | BIT(me);
#ifndef RELEASED_WITHOUT_DOUBT
      doubt[me] = 1
#endif
    }
#endif
  fi;
  goto user_code
#endif
}

/* ---- takers ---- */

#ifdef TAKER_LOCK
#define LOCK_TAKERS   atomic { taker_lock == 0 -> taker_lock = 1 }
#define UNLOCK_TAKERS taker_lock = 0
#else
#define LOCK_TAKERS   skip
#define UNLOCK_TAKERS skip
#endif

proctype sysmon() {
  byte p, w, m;
  bit f;
#ifdef JUDGE
  byte judged;                /* set of Ms found asleep in this look */
#endif

end:
  if
#ifdef JUDGE
  :: atomic {
      some_p(ALL, p);
      if
      :: ST(word[p]) == RUN -> w = word[p]
      :: else -> p = 0; goto end
      fi
    };
    atomic {
      if
      :: HAS(asleep, OWN(w)) -> judged = BIT(OWN(w))
      :: else -> p = 0; w = 0; goto end
      fi
    };
    atomic {
#ifdef TAKER_LOCK
      taker_lock == 0;
#endif
      if
#ifdef JUDGE_LATER
      :: ST(word[p]) == RUN -> w = word[p]
#else
      :: word[p] == w
#endif
      :: else -> p = 0; w = 0; judged = 0; goto end
      fi;
      assert(HAS(judged, OWN(w)));
      judged = 0;
      word[p] = AS(RET_S, w);
#ifdef TAKER_LOCK
      taker_lock = 1
#endif
    };
    doubt[OWN(w)] = 1;
#else
  :: atomic {
#ifdef TAKER_LOCK
      taker_lock == 0;
#endif
      some_p(ALL, p);
      if
#ifdef DOUBT_FIRST
      :: ST(word[p]) == RUN -> w = word[p]
#else
      :: ST(word[p]) == RUN -> w = word[p]; word[p] = AS(RET_S, w)
#endif
      :: else -> p = 0; goto end
      fi;
#ifdef TAKER_LOCK
      taker_lock = 1
#endif
    }
#ifndef DOUBT_LATE
    doubt[OWN(w)] = 1;
#endif
#ifdef DOUBT_FIRST
    atomic {
      if :: word[p] == w -> word[p] = AS(RET_S, w) :: else -> p = 0; w = 0; goto end fi
    }
#endif
#endif
#ifdef SILENT
  :: atomic { lock == 0 && idle != 0 && waitq == 0 && !stopping && adrift != 0 ->
      lock = 1; some_p(idle, p); some_m(adrift, m) };
    gen[p] = (gen[p] + 1) % NGEN; mp[m] = p;
    mw[m] = W(RUN, m, gen[p]);
    word[p] = mw[m];
    atomic { idle = idle & ~BIT(p); adrift = adrift & ~BIT(m); p = 0; m = 0; lock = 0; goto end }
#endif
  fi;
  membarrier(OWN(w));
#ifdef DOUBT_LATE
  doubt[OWN(w)] = 1;
#endif
  f = flag[OWN(w)];
  atomic {
#ifdef TAKER_LOCK
    taker_lock = 0;
#endif
    if
    :: f && word[p] == AS(RET_S, w) -> word[p] = w; p = 0; w = 0; f = 0; goto end
#ifdef PLAIN_RECHECK
    :: !f
#else
    :: !f && word[p] == AS(RET_S, w)
#endif
    :: else -> p = 0; w = 0; f = 0; goto end
    fi;
    word[p] = AS(LOST, w); taken[p] = SYSMON; w = 0;
    use(p, SYSMON)
  };
  atomic {
    lock == 0;
    unuse(p);
    set_adrift(p);
#ifdef SYSMON_IGNORES_STOP
    if
    :: waitq == 0 -> idle = idle | BIT(p); word[p] = NONE; taken[p] = 0
    :: waitq != 0 -> some_m(waitq, m); waitq = waitq & ~BIT(m); new_owner(p, m); m = 0
    fi;
#else
    dispose(p, m);
#endif
    p = 0;
    goto end
  }
}

proctype stw() {
  byte p, m, w[NP];

end:
  atomic { lock == 0 -> stopping = 1; bag = idle; idle = 0 };

round:
  if
  :: bag == ALL -> goto stopped
  :: bag != ALL
  fi;
  LOCK_TAKERS;
  do
  :: p < NP -> atomic {
      if
      :: ST(word[p]) == RUN -> w[p] = word[p]; word[p] = AS(RET_W, word[p])
      :: else -> p++; goto begin_next
      fi
    };
    atomic { doubt[OWN(w[p])] = 1; p++ };
begin_next: skip
  :: p == NP -> p = 0; break
  od;
  do
  :: p < NP -> atomic { if :: w[p] != 0 -> membarrier(OWN(w[p])) :: else fi; p++ }
  :: p == NP -> p = 0; break
  od;
  do
  :: p < NP && w[p] == 0 -> p++
  :: p < NP && w[p] != 0 ->
    m = flag[OWN(w[p])];
    atomic {
      if
      :: m && word[p] == AS(RET_W, w[p]) -> word[p] = w[p]
#ifdef PLAIN_RECHECK
      :: !m -> word[p] = AS(LOST, w[p]);
#else
      :: !m && word[p] == AS(RET_W, w[p]) -> word[p] = AS(LOST, w[p]);
#endif
        taken[p] = STW; bag = bag | BIT(p); use(p, STW); unuse(p)
      :: else
      fi;
      m = 0; w[p] = 0; p++
    }
  :: p == NP -> p = 0; break
  od;
  UNLOCK_TAKERS;
  goto round;

stopped:
  atomic { use(0, STW)
#if NP > 1
    ; use(1, STW)
#endif
  };
  atomic { unuse(0)
#if NP > 1
    ; unuse(1)
#endif
  };
#ifdef GIVE_BACK_UNLOCKED
  do
  :: p < NP && UNNOTICED(p) -> atomic { word[p] = AS(RUN, word[p]); taken[p] = 0; bag = bag & ~BIT(p); p++ }
  :: p < NP -> p++
  :: p == NP -> p = 0; break
  od;
#endif
  atomic { lock == 0 -> lock = 1; stopping = 0 };
  do
  :: p < NP -> atomic {
      if
      :: !HAS(bag, p)
      :: HAS(bag, p) && UNNOTICED(p) -> word[p] = AS(RUN, word[p]); taken[p] = 0
      :: HAS(bag, p) -> set_adrift(p); dispose(p, m)
      fi;
      bag = bag & ~BIT(p);
      p++
    }
  :: p == NP -> break
  od;
  atomic { p = 0; lock = 0; goto end }
}

/* ---- the hardware, and the watcher of property 2 ---- */

#define INV(p_) ( \
  (HELD(word[p_]) && mp[OWN(word[p_])] == (p_) && mw[OWN(word[p_])] == AS(RUN, word[p_]) \
     && !HAS(idle, p_) && !HAS(bag, p_)) \
  || (word[p_] == NONE && HAS(idle, p_) + HAS(bag, p_) == 1) \
  || (ST(word[p_]) == LOST && taken[p_] != 0 && !HAS(idle, p_) && HAS(bag, p_) == (taken[p_] == STW)))

proctype hw() {
end:
  do
  :: atomic { sb_n[0] > 0 -> commit_one(0) }
  :: atomic { sb_n[1] > 0 -> commit_one(1) }
#if NM > 2
  :: atomic { sb_n[2] > 0 -> commit_one(2) }
#endif
  :: atomic { lock == 0 && !INV(0) -> assert(false) }
#if NP > 1
  :: atomic { lock == 0 && !INV(1) -> assert(false) }
#endif
  :: atomic { lock == 0 && idle != 0 && (waitq != 0 || stopping) -> assert(false) }
  od
}

init {
  byte i;
  atomic {
    do
    :: i < NM && i < NP -> mp[i] = i; new_owner(i, i); i++
    :: i < NM && i >= NP -> mp[i] = NIL; mw[i] = NO_WORD; doubt[i] = 1; adrift = adrift | BIT(i); i++
    :: i == NM -> break
    od;
    run hw();
    run M(0);
    run M(1);
#if NM > 2
    run M(2);
#endif
    run sysmon();
#ifndef NO_STW
    run stw();
#endif
  }
}

#ifdef LIVE
ltl stop_ends { [] (stopping -> <> !stopping) }
#endif
