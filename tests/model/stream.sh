#!/usr/bin/env bash
# Checks stream.pml: the writers of the stream of an M.  See README.md for what the results mean.
. "$(dirname "$0")/lib.sh"
model=stream.pml

holds "3 events, a taker and the end of a generation"
holds "5 events, a store buffer of 5" -DEVENTS=5 -DBUF=5

fails "membarrier left out" -DNO_MEMBARRIER
fails "wanted is set after the membarrier" -DWANTED_LATE
fails "the M does not look again after it has waited" -DNO_SECOND_LOOK
fails "the M loads the generation before the stream is its own" -DGENERATION_EARLY
fails "visitors do not take turns" -DNO_VISITORS_LOCK
exit $bad
