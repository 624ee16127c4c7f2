#!/usr/bin/env bash
# Checks idle.pml: no work is overlooked by an M that goes to sleep.  See README.md for what the results mean.
. "$(dirname "$0")/lib.sh"
model=idle.pml
base="-DNM=3 -DLEFT=2 -DOUTSIDE=1"
retake="-DNM=4 -DLEFT=2 -DOUTSIDE=0 -DRETAKES=1"
yield="-DNM=3 -DLEFT=2 -DOUTSIDE=0 -DYIELDS=1"
no_threads="-DNM=2 -DLEFT=0 -DOUTSIDE=2 -DNO_THREADS"

holds "2 Ps, 3 Ms, 2 Gs from inside, 1 from a thread" $base
holds "2 Ps, 4 Ms, 2 Gs from inside, 1 retake" $retake
holds "yield with a fence before its look at the idle Ps" $yield -DYIELD_FENCE
holds "no M can be created: the global queue is served" $no_threads

fails "no look-again" $base -DNO_LOOK_AGAIN
fails "look again first, then leave the spinning state" $base -DDECREMENT_AFTER_LOOK
fails "no need_spinning" $base -DNO_NEED_SPINNING
fails "an M that found work while spinning wakes no other" $base -DNO_WAKE_AFTER_SPIN
fails "wake_p without an idle P does not set need_spinning" $base -DWAKE_SILENT
fails "wake_p without an idle P leaves the spinning state outside the lock" $base -DDECREMENT_UNLOCKED
fails "wake_p sets need_spinning before it leaves the spinning state" $base -DGO_ORDER
fails "look-again without an idle P does not set need_spinning" $retake -DLOOK_AGAIN_SILENT
fails "hand_off makes a P idle without a look at need_spinning" $retake -DGO_HAND_OFF
fails "yield without a fence" $yield
fails "no M can be created, and an M goes to sleep without a look" $no_threads -DSLEEP_BLINDLY

if long; then
  hash=28 memory_mb=16000
  holds "long: 2 Ps, 3 Ms, 1 G from inside, 2 from a thread" -DNM=3 -DLEFT=1 -DOUTSIDE=2
  holds "long: 2 Ps, 4 Ms, 2 Gs from inside, 1 from a thread" -DNM=4 -DLEFT=2 -DOUTSIDE=1
  holds "long: 2 Ps, 4 Ms, 1 G from inside, 1 from a thread, 1 retake" -DNM=4 -DLEFT=1 -DOUTSIDE=1 -DRETAKES=1
  holds "long: 3 Ps, 4 Ms, 2 Gs from inside" -DNP=3 -DNM=4 -DLEFT=2 -DOUTSIDE=0
fi
exit $bad
