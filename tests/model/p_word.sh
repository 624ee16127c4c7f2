#!/usr/bin/env bash
# Checks p_word.pml: the take-over of a P.  See README.md for what the results mean.
. "$(dirname "$0")/lib.sh"
model=p_word.pml
all="-DHANDLER -DSILENT -DRELEASE_PAUSED"

holds "2 Ms, 1 P, two takers, give-back with the same generation" -DNGEN=2
holds "the same, and handler, silent give, release; no generations" -DNGEN=1 $all
holds "2 Ms, 1 P, all of it, takers under one lock" -DNGEN=1 -DTAKER_LOCK $all
holds "2 Ms, 2 Ps, takers under one lock" -DNP=2 -DNGEN=1 -DTAKER_LOCK
holds "2 Ms, 1 P, sysmon takes by the word that it judged" -DNGEN=1 -DTAKER_LOCK -DJUDGE
holds_ltl "every stop-the-world ends" -DLIVE -DNGEN=1

fails "membarrier left out" -DNO_MEMBARRIER
fails "re-check by plain stores instead of a CAS" -DPLAIN_RECHECK
fails "give-back without sched_lock" -DGIVE_BACK_UNLOCKED
fails "both takers use one and the same retaking state" -DSHARED_RETAKING
fails "the slow path looks for running only, not for retaking" -DRECHECK_EQUAL_ONLY
fails "the same without stop-the-world, and so without give-back" -DRECHECK_EQUAL_ONLY -DNO_STW
fails "p_word of an M without a P equals the word of an idle P" -DNIL_WORD_IS_NONE $all
fails "in_doubt is set before the word changes" -DDOUBT_FIRST -DNO_STW
fails "in_doubt is set after the membarrier" -DDOUBT_LATE -DNO_STW
fails "in_doubt is taken back after the look at the word" -DTRUST_LATE
fails "a paused M goes on without a P and without doubt" -DRELEASED_WITHOUT_DOUBT $all
fails "sysmon makes a P idle while the world stops" -DSYSMON_IGNORES_STOP
fails "sysmon judges one owner asleep and takes from the next one" -DNGEN=1 -DTAKER_LOCK -DJUDGE -DJUDGE_LATER
fails_ltl "an M leaves the runtime without looking for a stop request" -DLIVE -DNGEN=1 -DM_IGNORES_STOP

if long; then
  depth=30000000 hash=28 memory_mb=16000
  holds "long: 3 Ms, 1 P, takers under one lock" -DNM=3 -DNGEN=1 -DTAKER_LOCK
  holds "long: 2 Ms, 2 Ps, two takers" -DNP=2 -DNGEN=1
  holds "long: 2 Ms, 1 P, all of it, generations modulo 2" -DNGEN=2 $all
  holds "long: 2 Ms, 1 P, all of it, store buffers of 4" -DNGEN=1 -DBUF=4 $all
  holds "long: 3 Ms, 1 P, two takers" -DNM=3 -DNGEN=1
  holds "long: 2 Ms, 2 Ps, all of it, takers under one lock" -DNP=2 -DNGEN=1 -DTAKER_LOCK $all
  holds "long: 2 Ms, 2 Ps, all of it" -DNP=2 -DNGEN=1 $all
fi
exit $bad
