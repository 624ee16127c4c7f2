/*
 * The note with two threads that signal at the same time: one with something to say (an M is given a P), one without (it is told to
 * look at the timers, or for a deadlock).  src/runtime/threads/m.h
 *
 * Modelled protocol: as in note.pml; the sleeper waits in a loop until it finds what it was told (`mail`).  Taking the signal
 *   away is an exchange with 0, after which the mail is read.
 * Property: the sleeper does not sleep for ever (invalid end states).
 * Wrong on purpose: CONSUME_BY_STORE: a plain store, whose effect may come after the read of the mail that follows it.
 */

byte word;
bit  asleep, mail;

inline signal(old) {
  atomic { old = word; word = 1 };
  if
  :: old == 2 -> asleep = 0
  :: else
  fi;
  old = 0
}

proctype sleeper() {
  bit seen;
  do
  :: seen -> break
  :: !seen ->
    if
    :: atomic { word == 0 -> word = 2 }
    :: atomic { word != 0 -> goto said }
    fi;
again:
    if
    :: atomic { word == 2 -> asleep = 1 };
       asleep == 0;
       goto again
    :: word != 2
    fi;
said:
#ifdef CONSUME_BY_STORE
    seen = mail;
    word = 0
#else
    word = 0;
    seen = mail
#endif
  od
}

proctype idle_talk() {
  byte old;
  signal(old)
}

proctype giver() {
  byte old;
  mail = 1;
  signal(old)
}

init {
  atomic { run sleeper(); run idle_talk(); run giver() }
}
