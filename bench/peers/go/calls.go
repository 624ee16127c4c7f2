// Goroutines that do nothing but block their threads: how many calls they get done. The counterpart
// of calls.cc. Go's system calls announce themselves, and stand for all three forms of Gofer's.
package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const runMs = 400

var _ = suite(callWorkloads()...)

func callWorkloads() []workload {
	times := []struct {
		name string
		call time.Duration
	}{
		{"10us", 10 * time.Microsecond},
		{"100us", 100 * time.Microsecond},
		{"1ms", time.Millisecond},
		{"10ms", 10 * time.Millisecond},
	}
	var all []workload
	for _, form := range []string{"announced", "handoff", "unannounced"} {
		for _, t := range times {
			for _, goroutines := range []int{1, 10, 100} {
				name := fmt.Sprintf("calls_%s_%s_%d", form, t.name, goroutines)
				all = append(all, workload{name, func(j job) { calls(j, t.call, goroutines) }, runMs})
			}
		}
	}
	return all
}

// The goroutines call for n ms. The time includes what the last calls take.
func calls(j job, call time.Duration, goroutines int) {
	var stop atomic.Bool
	var done atomic.Int64
	var finished sync.WaitGroup
	start := time.Now()
	for i := 0; i < goroutines; i++ {
		finished.Add(1)
		go func() {
			mine := int64(0)
			for ; !stop.Load(); mine++ {
				blockFor(call)
			}
			done.Add(mine)
			finished.Done()
		}()
	}
	time.Sleep(time.Duration(j.n) * time.Millisecond)
	stop.Store(true)
	finished.Wait()
	seconds := time.Since(start).Seconds()
	check(done.Load() >= int64(goroutines), "calls: count")
	j.report(j.name, float64(done.Load())/seconds, "calls/s")
}
