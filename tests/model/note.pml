/*
 * The note: a place where one thread sleeps until another one signals, once (src/runtime/threads/m.h).
 *
 * Modelled protocol: a word 0 | 1 (said) | 2 (asleep).
 *   signal: exchange with 1; if it was 2, futex_wake.
 *   wait: CAS 0 -> 2; while the word is 2: futex_wait(2), which sleeps only if the word is still 2, and may return
 *     early or because the time is over; then CAS 2 -> 0 gives up.  Otherwise the word is 1 and is set to 0.
 *   At most one signal is under way: the next one comes only after a wait has returned true (here: `turn`), as with an M
 *   that must put itself on the idle list before it can be woken again.  A futex_wake may come late, into the next wait.
 *
 * Properties: every signal ends exactly one wait; the sleeper never sleeps with the word at 1 and no futex_wake to come
 *   (invalid end states); a wait that gave up loses no signal.
 * Memory model: sequentially consistent; all accesses are read-modify-writes, or follow one.
 * Abstracted away: the time.  Two waits may give up, whenever they are in the kernel.
 *
 * Wrong on purpose: GIVE_UP_BLINDLY (a plain store instead of the CAS 2 -> 0), SLEEP_BLINDLY (a futex_wait that does not
 *   compare), WAKE_BEFORE_STORE (futex_wake and then the word).
 */

#ifndef ROUNDS
#define ROUNDS 3
#endif

byte word;
bit  asleep;              /* in the kernel's queue */
byte turn;                /* signals asked for */
byte sent, received;
byte early = 2, limits = 2;   /* bounded: a sleeper must not need them in order to go on */

proctype sleeper() {
  do
  :: received < ROUNDS ->
    atomic { if :: turn == received -> turn++ :: else fi };   /* the next signal may come; not after a time-out */
    if
    :: atomic { word == 0 -> word = 2 }
    :: atomic { word != 0 -> goto said }
    fi;
again:
    if
    :: word == 2 ->
      atomic {
        if
#ifdef SLEEP_BLINDLY
        :: true -> asleep = 1
#else
        :: word == 2 -> asleep = 1
        :: word != 2 -> goto again
#endif
        fi
      };
      if
      :: asleep == 0 -> goto again                  /* woken */
      :: atomic { early > 0 -> early--; asleep = 0; goto again }   /* for no reason: a signal handler ran */
      :: atomic { limits > 0 -> limits--; asleep = 0 };            /* the time is over */
#ifdef GIVE_UP_BLINDLY
        word = 0;
        goto gave_up
#else
        atomic { if :: word == 2 -> word = 0; goto gave_up :: else -> goto again fi }
#endif
      fi
    :: word != 2
    fi;
said:
    atomic { assert(word == 1); word = 0; received++; assert(received <= sent) };
gave_up:
    skip
  :: received == ROUNDS -> break
  od
}

proctype speaker() {
  byte old;
  do
  :: sent < ROUNDS ->
    atomic { turn > sent -> sent++ };
#ifdef WAKE_BEFORE_STORE
    atomic { old = word; if :: old == 2 -> asleep = 0 :: else fi };
    word = 1;
    old = 0;
#else
    atomic { old = word; word = 1 };
    if
    :: old == 2 -> atomic { asleep = 0; old = 0 }
    :: old != 2 -> old = 0
    fi
#endif
  :: sent == ROUNDS -> break
  od
}

init {
  atomic { run sleeper(); run speaker() }
}
