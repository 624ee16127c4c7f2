// The scheduler alone: the cost of a yield, and of a goroutine's whole life in four shapes.
// The counterpart of core.cc.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var _ = suite(
	workload{"yield", yield, 5_000_000},
	workload{"spawn_join", spawnJoin, 1_000_000},
	workload{"spawn_serial", spawnSerial, 1_000_000},
	workload{"spawn_nested", spawnNested, 1_000},
)

// Two goroutines yield to each other, n times each.
func yieldNs(n int) float64 {
	var gate, finished sync.WaitGroup
	var yields [2]int
	gate.Add(1)
	finished.Add(2)
	for who := range yields {
		go func() {
			gate.Wait()
			for i := 0; i < n; i++ {
				runtime.Gosched()
			}
			yields[who] = n
			finished.Done()
		}()
	}
	runtime.Gosched()
	start := time.Now()
	gate.Done()
	finished.Wait()
	ns := nsEach(time.Since(start), 2*n)
	check(yields[0]+yields[1] == 2*n, "yield: count")
	return ns
}

func yield(j job) {
	yieldNs(j.n/10 + 1)
	j.report("yield", yieldNs(j.n), "ns")
}

// All are made before anybody waits for them.
func spawnJoinNs(n int) float64 {
	var wg sync.WaitGroup
	start := time.Now()
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() { wg.Done() }()
	}
	wg.Wait()
	return nsEach(time.Since(start), n)
}

func checkSpawnJoin(n int) {
	var wg sync.WaitGroup
	var sum atomic.Int64
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			sum.Add(int64(i))
			wg.Done()
		}()
	}
	wg.Wait()
	check(sum.Load() == int64(n)*int64(n-1)/2, "spawn_join: each goroutine runs once")
}

func spawnJoin(j job) {
	j.report("spawn_join_first", spawnJoinNs(j.n), "ns")
	j.report("spawn_join_second", spawnJoinNs(j.n), "ns")
	checkSpawnJoin(j.n/10 + 1)
}

// One at a time: start it, wait for it.
func spawnSerialNs(n int) float64 {
	var wg sync.WaitGroup
	ran := 0
	start := time.Now()
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			ran++
			wg.Done()
		}()
		wg.Wait()
	}
	ns := nsEach(time.Since(start), n)
	check(ran == n, "spawn_serial: count")
	return ns
}

func spawnSerial(j job) {
	spawnSerialNs(j.n/10 + 1)
	j.report("spawn_serial", spawnSerialNs(j.n), "ns")
}

// n goroutines that each start n more and wait for them.
func spawnNested(j job) {
	n := j.n
	var outer sync.WaitGroup
	var joined atomic.Int64
	start := time.Now()
	outer.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			var inner sync.WaitGroup
			inner.Add(n)
			for k := 0; k < n; k++ {
				go func() { inner.Done() }()
			}
			inner.Wait()
			joined.Add(int64(n))
			outer.Done()
		}()
	}
	outer.Wait()
	ns := nsEach(time.Since(start), n*n+n)
	check(joined.Load() == int64(n)*int64(n), "spawn_nested: count")
	j.report("spawn_nested", ns, "ns")
}
