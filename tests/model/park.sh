#!/usr/bin/env bash
# Checks park.pml and note.pml: how a G, and a thread, goes to sleep and is woken.  See README.md.
. "$(dirname "$0")/lib.sh"
model=park.pml

holds "2 Ms, 3 Gs, 2 operations each" -DNM=2 -DNG=3 -DOPS=2
fails "the commit runs before the context is saved" -DCOMMIT_BEFORE_SAVE
fails "the commit unlocks before it sets the status" -DSTATUS_AFTER_UNLOCK
fails "a commit that fails does not ready the old G" -DFAILED_COMMIT_FORGETS
fails "the commit loads and stores the word instead of a CAS" -DCHECK_THEN_STORE
fails "the waker exchanges the word, and clears it after" -DEXCHANGE_THEN_CLEAR

if long; then
  holds "long: 3 Ms, 3 Gs, 2 operations each" -DNM=3 -DNG=3 -DOPS=2
  holds "long: 2 Ms, 3 Gs, 3 operations each" -DNM=2 -DNG=3 -DOPS=3
fi

model=note.pml
holds "note: 3 signals, 2 waits that give up, 2 early returns" -DROUNDS=3
fails "note: a wait gives up by a plain store" -DGIVE_UP_BLINDLY
fails "note: futex_wait does not compare" -DSLEEP_BLINDLY
fails "note: futex_wake before the store" -DWAKE_BEFORE_STORE
model=note_two.pml
holds "note: two signals at the same time"
fails "note: the signal is taken away by a plain store" -DCONSUME_BY_STORE
exit $bad
