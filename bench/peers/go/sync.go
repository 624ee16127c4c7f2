// Locks, and skynet: a tree of goroutines that sums up its million leaves over channels.
// The counterpart of sync.cc.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

var _ = suite(
	workload{"mutex_alone", mutexAlone, 100_000_000},
	workload{"mutex_contended", mutexContended, 1_000_000},
	workload{"rw_mutex_readers", rwMutexReaders, 1_000_000},
	workload{"skynet", skynet, 1_000_000},
	workload{"malloc_skynet", mallocSkynet, 1_000_000},
)

const goroutines = 8

var shared int // what the locks protect; not a local, so that it is in memory

func mutexAloneNs(n int) float64 {
	var mu sync.Mutex
	shared = 0
	start := time.Now()
	for i := 0; i < n; i++ {
		mu.Lock()
		shared++
		mu.Unlock()
	}
	ns := nsEach(time.Since(start), n)
	check(shared == n, "mutex_alone: count")
	return ns
}

func mutexAlone(j job) {
	mutexAloneNs(j.n/10 + 1)
	j.report("mutex_alone", mutexAloneNs(j.n), "ns")
}

// Eight goroutines, n times each.
func mutexContendedNs(n int) float64 {
	var mu sync.Mutex
	var finished sync.WaitGroup
	shared = 0
	start := time.Now()
	finished.Add(goroutines)
	for g := 0; g < goroutines; g++ {
		go func() {
			for i := 0; i < n; i++ {
				mu.Lock()
				shared++
				mu.Unlock()
			}
			finished.Done()
		}()
	}
	finished.Wait()
	ns := nsEach(time.Since(start), goroutines*n)
	check(shared == goroutines*n, "mutex_contended: count")
	return ns
}

func mutexContended(j job) {
	mutexContendedNs(j.n/10 + 1)
	j.report("mutex_contended", mutexContendedNs(j.n), "ns")
}

// Eight goroutines read, n times each; nobody writes.
func rwMutexReadersNs(n int) float64 {
	var mu sync.RWMutex
	var finished sync.WaitGroup
	var sum atomic.Int64
	shared = 1
	start := time.Now()
	finished.Add(goroutines)
	for g := 0; g < goroutines; g++ {
		go func() {
			read := 0
			for i := 0; i < n; i++ {
				mu.RLock()
				read += shared
				mu.RUnlock()
			}
			sum.Add(int64(read))
			finished.Done()
		}()
	}
	finished.Wait()
	ns := nsEach(time.Since(start), goroutines*n)
	check(sum.Load() == int64(goroutines*n), "rw_mutex_readers: sum")
	return ns
}

func rwMutexReaders(j job) {
	rwMutexReadersNs(j.n/10 + 1)
	j.report("rw_mutex_readers", rwMutexReadersNs(j.n), "ns")
}

// The root of a tree of goroutines with ten children each. A leaf sends its number, any other one
// the sum of what it receives.
const children = 10

func skynetNode(parent chan int, first, leaves int) {
	if leaves == 1 {
		parent <- first
		return
	}
	here := make(chan int)
	each := leaves / children
	for i := 0; i < children; i++ {
		go skynetNode(here, first+i*each, each)
	}
	sum := 0
	for i := 0; i < children; i++ {
		sum += <-here
	}
	parent <- sum
}

func skynetMs(n int) float64 {
	result := make(chan int)
	start := time.Now()
	go skynetNode(result, 0, n)
	sum := <-result
	took := time.Since(start)
	check(sum == sumBelow(n), "skynet: sum")
	return ms(took)
}

func skynet(j job) {
	j.report("skynet_first", skynetMs(j.n), "ms")
	j.report("skynet_second", skynetMs(j.n), "ms")
}

// Skynet in which every goroutine has a block of the heap for as long as it lives.
var blockBytes = 300 // a variable, so that the block is not on the stack

func mallocSkynetNode(parent chan int, first, leaves int) {
	block := make([]byte, blockBytes)
	block[first%blockBytes] = 1
	sum := first
	if leaves > 1 {
		here := make(chan int)
		each := leaves / children
		for i := 0; i < children; i++ {
			go mallocSkynetNode(here, first+i*each, each)
		}
		sum = 0
		for i := 0; i < children; i++ {
			sum += <-here
		}
	}
	check(block[first%blockBytes] == 1, "malloc_skynet: block")
	parent <- sum
}

func mallocSkynet(j job) {
	result := make(chan int)
	start := time.Now()
	go mallocSkynetNode(result, 0, j.n)
	sum := <-result
	took := time.Since(start)
	check(sum == sumBelow(j.n), "malloc_skynet: sum")
	j.report("malloc_skynet", ms(took), "ms")
}
