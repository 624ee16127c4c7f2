// What a parked goroutine costs: resident memory, page tables, and the time to get there.
// The counterpart of parked.cc.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var _ = suite(
	workload{"parked_100k", func(j job) { park(j, "parked_100k") }, 100_000},
	workload{"parked_1m", func(j job) { park(j, "parked_1m") }, 1_000_000},
)

type memory struct {
	residentBytes  int
	pageTableBytes int
}

func readMemory() memory {
	found := memory{-1, -1}
	status, err := os.Open("/proc/self/status")
	check(err == nil, "cannot read /proc/self/status")
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		var kib int
		if _, err := fmt.Sscanf(lines.Text(), "VmRSS: %d", &kib); err == nil {
			found.residentBytes = kib * 1024
		}
		if _, err := fmt.Sscanf(lines.Text(), "VmPTE: %d", &kib); err == nil {
			found.pageTableBytes = kib * 1024
		}
	}
	check(found.residentBytes >= 0 && found.pageTableBytes >= 0, "no VmRSS or VmPTE")
	return found
}

func park(j job, name string) {
	n := j.n
	var gate, finished sync.WaitGroup
	var started, released atomic.Int64
	gate.Add(1)
	finished.Add(n)

	runtime.GC()
	before := readMemory()
	start := time.Now()
	for i := 0; i < n; i++ {
		go func() {
			started.Add(1)
			gate.Wait()
			released.Add(1)
			finished.Done()
		}()
	}
	for started.Load() != int64(n) {
		runtime.Gosched()
	}
	createNs := nsEach(time.Since(start), n)
	time.Sleep(100 * time.Millisecond) // the last ones are on their way into Wait
	after := readMemory()

	check(released.Load() == 0, "parked: the gate holds")
	gate.Done()
	finished.Wait()
	check(released.Load() == int64(n), "parked: all go on")

	each := func(grown int) float64 { return float64(grown) / float64(n) }
	j.report(name+"_rss", each(after.residentBytes-before.residentBytes), "bytes")
	j.report(name+"_pte", each(after.pageTableBytes-before.pageTableBytes), "bytes")
	j.report(name+"_create", createNs, "ns")
}
