// Timers: goroutines that sleep, and timers that are stopped or set anew long before their time.
// The counterpart of timers.cc.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

var _ = suite(
	workload{"sleepers_100k", func(j job) { sleepers(j, "sleepers_100k") }, 100_000},
	workload{"sleepers_1m", func(j job) { sleepers(j, "sleepers_1m") }, 1_000_000},
	workload{"timer_stop", func(j job) { startStop(j, "timer_stop", 0) }, 5_000_000},
	workload{"timer_stop_beside_100k", func(j job) {
		startStop(j, "timer_stop_beside_100k", 100_000)
	}, 2_000_000},
	workload{"timer_reset", timerReset, 10_000_000},
)

// All are started at once and sleep for the same time.
func sleepers(j job, name string) {
	const nap = 100 * time.Millisecond
	var finished sync.WaitGroup
	var woken atomic.Int64
	start := time.Now()
	finished.Add(j.n)
	for i := 0; i < j.n; i++ {
		go func() {
			time.Sleep(nap)
			woken.Add(1)
			finished.Done()
		}()
	}
	finished.Wait()
	took := time.Since(start)
	check(woken.Load() == int64(j.n), "sleepers: count")
	check(took >= nap, "sleepers: nobody is early")
	j.report(name, ms(took), "ms")
}

func startStopNs(n int) float64 {
	stopped := 0
	start := time.Now()
	for i := 0; i < n; i++ {
		t := time.AfterFunc(time.Hour, func() {})
		if t.Stop() {
			stopped++
		}
	}
	ns := nsEach(time.Since(start), n)
	check(stopped == n, "timer_stop: count")
	return ns
}

// Beside others that are pending all the time, each with another time.
func startStop(j job, name string, others int) {
	pending := make([]*time.Timer, others)
	for i := range pending {
		pending[i] = time.AfterFunc(time.Hour+time.Duration(i)*time.Millisecond, func() {})
	}
	startStopNs(j.n/10 + 1)
	ns := startStopNs(j.n)
	for _, t := range pending {
		check(t.Stop(), "timer_stop: the others are pending")
	}
	j.report(name, ns, "ns")
}

func timerReset(j job) {
	t := time.AfterFunc(time.Hour, func() {})
	pending := 0
	start := time.Now()
	for i := 0; i < j.n; i++ {
		if t.Reset(time.Hour) {
			pending++
		}
	}
	ns := nsEach(time.Since(start), j.n)
	check(pending == j.n && t.Stop(), "timer_reset: count")
	j.report("timer_reset", ns, "ns")
}
