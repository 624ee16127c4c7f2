// Channels: a round trip, values through one channel by few and many goroutines, and select that
// waits and that does not. The counterpart of channels.cc.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

var _ = suite(
	workload{"ping_pong", pingPong, 2_000_000},
	workload{"chan_128_1_to_1", fan{1, 1, 128}.workload("chan_128_1_to_1"), 10_000_000},
	workload{"chan_128_4_to_4", fan{4, 4, 128}.workload("chan_128_4_to_4"), 4_000_000},
	workload{"chan_0_4_to_4", fan{4, 4, 0}.workload("chan_0_4_to_4"), 4_000_000},
	workload{"select_4_0", selectWorkload("select_4_0", 0), 4_000_000},
	workload{"select_4_128", selectWorkload("select_4_128", 128), 4_000_000},
	workload{"select_default_1", selectDefault1, 100_000_000},
	workload{"select_default_4", selectDefault4, 20_000_000},
)

// 0 + 1 + ... + (n - 1)
func sumBelow(n int) int { return n * (n - 1) / 2 }

// A value goes there and comes back, one at a time.
func pingPongNs(n int) float64 {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
		close(back)
	}()
	sum := 0
	start := time.Now()
	for i := 0; i < n; i++ {
		there <- i
		sum += <-back
	}
	ns := nsEach(time.Since(start), n)
	close(there)
	_, more := <-back
	check(!more && sum == sumBelow(n), "ping_pong: sum")
	return ns
}

func pingPong(j job) {
	pingPongNs(j.n/10 + 1)
	j.report("ping_pong", pingPongNs(j.n), "ns")
}

// Some send, others receive, all through one channel; the clock includes their start and end.
type fan struct {
	producers, consumers, capacity int
}

func (f fan) ns(n int) float64 {
	each := n / f.producers
	c := make(chan int, f.capacity)
	var sending, receiving sync.WaitGroup
	var sum atomic.Int64
	start := time.Now()
	sending.Add(f.producers)
	for i := 0; i < f.producers; i++ {
		go func() {
			for k := 0; k < each; k++ {
				c <- k
			}
			sending.Done()
		}()
	}
	receiving.Add(f.consumers)
	for i := 0; i < f.consumers; i++ {
		go func() {
			received := 0
			for v := range c {
				received += v
			}
			sum.Add(int64(received))
			receiving.Done()
		}()
	}
	sending.Wait()
	close(c)
	receiving.Wait()
	ns := nsEach(time.Since(start), each*f.producers)
	check(sum.Load() == int64(f.producers*sumBelow(each)), "chan: sum")
	return ns
}

func (f fan) workload(name string) func(job) {
	return func(j job) {
		f.ns(j.n/10 + f.producers)
		j.report(name, f.ns(j.n), "ns")
	}
}

// Four goroutines send, each to a channel of its own; one select after another receives from all.
func selectNs(capacity, n int) float64 {
	each := n / 4
	a, b := make(chan int, capacity), make(chan int, capacity)
	c, d := make(chan int, capacity), make(chan int, capacity)
	sum := 0
	start := time.Now()
	for _, to := range []chan int{a, b, c, d} {
		go func() {
			for k := 0; k < each; k++ {
				to <- k
			}
		}()
	}
	for i := 0; i < 4*each; i++ {
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		case v := <-c:
			sum += v
		case v := <-d:
			sum += v
		}
	}
	ns := nsEach(time.Since(start), 4*each)
	check(sum == 4*sumBelow(each), "select: sum")
	return ns
}

func selectWorkload(name string, capacity int) func(job) {
	return func(j job) {
		selectNs(capacity, j.n/10+4)
		j.report(name, selectNs(capacity, j.n), "ns")
	}
}

// Nothing is ever there to be received.
func selectDefault1(j job) {
	c := make(chan int)
	misses := 0
	start := time.Now()
	for i := 0; i < j.n; i++ {
		select {
		case <-c:
		default:
			misses++
		}
	}
	ns := nsEach(time.Since(start), j.n)
	check(misses == j.n, "select_default_1: count")
	j.report("select_default_1", ns, "ns")
}

func selectDefault4(j job) {
	a, b, c, d := make(chan int), make(chan int), make(chan int), make(chan int)
	misses := 0
	start := time.Now()
	for i := 0; i < j.n; i++ {
		select {
		case <-a:
		case <-b:
		case <-c:
		case <-d:
		default:
			misses++
		}
	}
	ns := nsEach(time.Since(start), j.n)
	check(misses == j.n, "select_default_4: count")
	j.report("select_default_4", ns, "ns")
}
