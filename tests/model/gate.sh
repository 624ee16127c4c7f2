#!/usr/bin/env bash
# Checks gate.pml: when a P may go to a goroutine that needs a thread more.  See README.md for what the results mean.
. "$(dirname "$0")/lib.sh"
model=gate.pml
short="-DLENGTH=3 -DLONGEST=10 -DMOST=1"
longer="-DLENGTH=4 -DLONGEST=18 -DMOST=3"
beside_workers="-DSPINNERS=6 -DSETTER -DTICKER -DWORKERS"
late="-DSPINNERS=10 -DSETTER -DTICKER"

holds "12 tasks of up to 3 slices" -DTASKS=12 $short
holds "24 tasks of up to 3 slices: the same bound" -DTASKS=24 $short
holds "15 tasks of up to 4 slices" -DTASKS=15 $longer
holds "24 tasks of up to 4 slices: the same bound" -DTASKS=24 $longer
holds "2 Ps, 15 tasks of up to 3 slices" -DNP=2 -DTASKS=15 $short
holds "12 tasks of up to 3 slices beside a ticker" -DTASKS=12 -DLENGTH=3 -DLONGEST=14 -DMOST=3 -DTICKER
holds "10 spinners, a ticker, and the setter last" $late -DROUNDS=36
holds "the same with a room for 1" $late -DROOM=1 -DROUNDS=40
holds "the same with 2 Ps" $late -DNP=2 -DROUNDS=36
holds "6 tasks, 6 spinners, a ticker, and the setter last" -DTASKS=6 -DLENGTH=3 -DSPINNERS=6 -DSETTER -DTICKER -DROUNDS=40
holds "12 tasks of up to 3 slices, and one begins if overdue: the same bound" -DTASKS=12 $short -DOVERDUE=8
holds "6 spinners, workers that set the clock back, and the setter last" $beside_workers -DOVERDUE=5 -DROUNDS=90
holds "the same with 2 Ps" $beside_workers -DNP=2 -DOVERDUE=5 -DROUNDS=60

fails "workers set the clock back, and none begins if overdue" $beside_workers -DROUNDS=120
fails "the room never grows" $late -DROUNDS=100 -DNO_GROWTH
fails "any progress sets the clock back, the ticker's too" $late -DROUNDS=100 -DANY_PROGRESS_RESETS
fails "no fresh goroutine has a turn while tied ones crowd" $late -DROUNDS=100 -DCROWD_FIRST
fails "all tied goroutines take equal turns" -DTASKS=15 -DLENGTH=4 -DMOST=3 -DNO_OLDEST
fails "progress does not set the clock back" -DTASKS=15 -DLENGTH=4 -DMOST=3 -DKEEP_GROWTH
fails "a fresh goroutine follows each one that ends" -DTASKS=15 -DLENGTH=4 -DNO_SHRINK
exit $bad
