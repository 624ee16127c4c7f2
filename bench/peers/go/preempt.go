// Nobody stops the others: lateness beside goroutines that compute, and threads that block. The
// counterpart of preempt.cc. Go has no unannounced blocking outside of cgo: its system calls
// announce themselves, and stand for all three forms of Gofer's.
package main

import (
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var _ = suite(
	workload{"late_0", func(j job) { lateness(j, "late_0", 0) }, 1000},
	workload{"late_2", func(j job) { lateness(j, "late_2", 2) }, 1000},
	workload{"late_4", func(j job) { lateness(j, "late_4", 4) }, 1000},
	workload{"late_16", func(j job) { lateness(j, "late_16", 16) }, 1000},
	workload{"blocking_call", blockingCall, 200_000},
	workload{"blocked_announced", func(j job) { blocked(j, "blocked_announced") }, 100},
	workload{"blocked_handoff", func(j job) { blocked(j, "blocked_handoff") }, 100},
	workload{"blocked_unannounced", func(j job) { blocked(j, "blocked_unannounced") }, 100},
	workload{"wait_beside_blocked", waitBesideBlocked, 1000},
	workload{"wait_beside_computing", waitBesideComputing, 1000},
	workload{"spinners_16", spinners16, 100_000_000},
	workload{"compute_batch", computeBatch, 12_000},
	workload{"late_setter", lateSetter, 200},
	workload{"late_setter_5000", lateSetter, 5000},
	workload{"checkpoint", checkpoint, 10_000_000},
)

// A goroutine that sleeps for 1 ms, n times, beside some that never stop computing.
func lateness(j job, name string, spinners int) {
	var stop atomic.Bool
	var finished sync.WaitGroup
	for i := 0; i < spinners; i++ {
		finished.Add(1)
		go func() {
			for !stop.Load() {
			}
			finished.Done()
		}()
	}
	time.Sleep(50 * time.Millisecond)
	late := make([]float64, j.n)
	for i := range late {
		due := time.Now().Add(time.Millisecond)
		time.Sleep(time.Millisecond)
		late[i] = float64(time.Since(due).Nanoseconds()) / 1e3
	}
	stop.Store(true)
	finished.Wait()
	sort.Float64s(late)
	j.report(name+"_p50", late[len(late)/2], "us")
	j.report(name+"_p99", late[len(late)*99/100], "us")
}

// What it costs to say of a cheap system call that it may block.
func blockingCall(j job) {
	var leastBare, leastAnnounced float64
	for round := 0; round < 10; round++ {
		start := time.Now()
		for i := 0; i < j.n; i++ {
			syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		bare := nsEach(time.Since(start), j.n)
		start = time.Now()
		for i := 0; i < j.n; i++ {
			syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		announced := nsEach(time.Since(start), j.n)
		if round == 0 || bare < leastBare {
			leastBare = bare
		}
		if round == 0 || announced < leastAnnounced {
			leastAnnounced = announced
		}
	}
	j.report("blocking_call", leastAnnounced-leastBare, "ns")
}

func blockFor(d time.Duration) {
	request := syscall.NsecToTimespec(d.Nanoseconds())
	syscall.Nanosleep(&request, nil)
}

// 100 goroutines, each blocks its thread for 10 ms, 10 times.
func blocked(j job, name string) {
	var finished sync.WaitGroup
	start := time.Now()
	for i := 0; i < j.n; i++ {
		finished.Add(1)
		go func() {
			for k := 0; k < 10; k++ {
				blockFor(10 * time.Millisecond)
			}
			finished.Done()
		}()
	}
	finished.Wait()
	j.report(name, ms(time.Since(start)), "ms")
}

// How long a goroutine waits for its first run while another one blocks, or computes, for n ms.
func waitBeside(j job, name string, occupy func(time.Duration)) {
	var waited time.Duration
	var finished sync.WaitGroup
	finished.Add(2)
	go func() {
		start := time.Now()
		go func() {
			waited = time.Since(start)
			finished.Done()
		}()
		occupy(time.Duration(j.n) * time.Millisecond)
		finished.Done()
	}()
	finished.Wait()
	j.report(name, ms(waited), "ms")
}

func waitBesideBlocked(j job) { waitBeside(j, "wait_beside_blocked", blockFor) }

func waitBesideComputing(j job) {
	waitBeside(j, "wait_beside_computing", func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	})
}

// 16 goroutines that compute, the same amount each: what their preemption costs.
func spinners16(j job) {
	var finished sync.WaitGroup
	start := time.Now()
	for i := 0; i < 16; i++ {
		finished.Add(1)
		go func() {
			for k := 0; k < j.n; k++ {
			}
			finished.Done()
		}()
	}
	finished.Wait()
	j.report("spinners_16", ms(time.Since(start)), "ms")
}

const stepsEach = 5_000_000 // about 8 ms at 2.5 GHz

// Each step needs the result of the one before, and takes a multiplication and an addition on
// every side.
func calculate() uint64 {
	x := uint64(1)
	for i := 0; i < stepsEach; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// n goroutines that compute for longer than a slice, started at once.
func computeBatch(j job) {
	one := calculate()
	var sum atomic.Uint64
	var finished sync.WaitGroup
	start := time.Now()
	for i := 0; i < j.n; i++ {
		finished.Add(1)
		go func() {
			sum.Add(calculate())
			finished.Done()
		}()
	}
	finished.Wait()
	took := ms(time.Since(start))
	check(sum.Load() == one*uint64(j.n), "compute_batch: sum")
	j.report("compute_batch", took, "ms")
}

// n goroutines compute until a flag is set by one that was started after them.
func lateSetter(j job) {
	var set atomic.Bool
	var passed atomic.Int64
	var finished sync.WaitGroup
	start := time.Now()
	finished.Add(j.n + 2)
	for i := 0; i < j.n; i++ {
		go func() {
			for !set.Load() {
			}
			passed.Add(1)
			finished.Done()
		}()
	}
	go func() {
		set.Store(true)
		finished.Done()
	}()
	go finished.Done() // the goroutine started last runs first: it must not be the setter
	finished.Wait()
	took := ms(time.Since(start))
	check(passed.Load() == int64(j.n), "late_setter: count")
	j.report(j.name, took, "ms")
}

// A leaf with a frame, so that the compiler gives it a prologue, which looks whether to give way.
//
//go:noinline
func guarded(i int) byte {
	var frame [16]byte
	frame[i&15] = 1
	return frame[(i+1)&15]
}

//go:noinline
//go:nosplit
func unguarded(i int) byte {
	var frame [16]byte
	frame[i&15] = 1
	return frame[(i+1)&15]
}

// What a check costs whether to give way: that of a function's prologue.
func checkpoint(j job) {
	sum := byte(0)
	var leastBare, leastChecked time.Duration
	for round := 0; round < 10; round++ {
		start := time.Now()
		for i := 0; i < j.n; i++ {
			sum += unguarded(i)
		}
		bare := time.Since(start)
		start = time.Now()
		for i := 0; i < j.n; i++ {
			sum += guarded(i)
		}
		checked := time.Since(start)
		if round == 0 || bare < leastBare {
			leastBare = bare
		}
		if round == 0 || checked < leastChecked {
			leastChecked = checked
		}
	}
	check(sum == 0, "checkpoint: sum")
	j.report("checkpoint", float64((leastChecked-leastBare).Nanoseconds())/float64(j.n), "ns")
}
