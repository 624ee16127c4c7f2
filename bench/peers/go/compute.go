// Fork and join: fib with a goroutine per left branch, and a parallel quicksort.
// The counterpart of compute.cc.
package main

import (
	"slices"
	"sync"
	"time"
)

var _ = suite(
	workload{"fib", fib, 30},
	workload{"quicksort", quicksort, 10_000_000},
)

func fibForked(n int) int {
	if n < 2 {
		return n
	}
	var wg sync.WaitGroup
	var left int
	wg.Add(1)
	go func() {
		left = fibForked(n - 1)
		wg.Done()
	}()
	right := fibForked(n - 2)
	wg.Wait()
	return left + right
}

func fibValue(n int) int {
	value, next := 0, 1
	for ; n > 0; n-- {
		value, next = next, value+next
	}
	return value
}

// One left branch for every call with n >= 2.
func fibBranches(n int) int { return fibValue(n+1) - 1 }

func fib(j job) {
	start := time.Now()
	value := fibForked(j.n)
	took := time.Since(start)
	check(value == fibValue(j.n), "fib")
	j.report("fib", ms(took), "ms")
	j.report("fib_each", nsEach(took, fibBranches(j.n)), "ns")
}

const (
	parallelCutoff  = 2048
	insertionCutoff = 16
)

// splitmix64: the same numbers on every side.
func randomItems(n int) []int {
	items := make([]int, n)
	state := uint64(1)
	for i := range items {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		items[i] = int((z ^ (z >> 31)) >> 1)
	}
	return items
}

// Hoare's scheme around the median of first, middle and last: how many belong to the lower part.
// Neither part is empty: of three items, the median is never the only largest.
func split(items []int) int {
	a, b, c := items[0], items[len(items)/2], items[len(items)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	low, high := 0, len(items)-1
	for {
		for items[low] < pivot {
			low++
		}
		for items[high] > pivot {
			high--
		}
		if low >= high {
			return high + 1
		}
		items[low], items[high] = items[high], items[low]
		low++
		high--
	}
}

func insertionSort(items []int) {
	for next, value := range items {
		hole := next
		for ; hole > 0 && items[hole-1] > value; hole-- {
			items[hole] = items[hole-1]
		}
		items[hole] = value
	}
}

// Goes down into the smaller part and round the loop with the larger one.
func serialSort(items []int) {
	for len(items) > insertionCutoff {
		middle := split(items)
		if middle < len(items)-middle {
			serialSort(items[:middle])
			items = items[middle:]
		} else {
			serialSort(items[middle:])
			items = items[:middle]
		}
	}
	insertionSort(items)
}

func parallelSort(items []int) {
	if len(items) <= parallelCutoff {
		serialSort(items)
		return
	}
	middle := split(items)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		parallelSort(items[:middle])
		wg.Done()
	}()
	parallelSort(items[middle:])
	wg.Wait()
}

func sumOf(items []int) uint64 {
	sum := uint64(0)
	for _, v := range items {
		sum += uint64(v)
	}
	return sum
}

func quicksort(j job) {
	items := randomItems(j.n)
	sum := sumOf(items)
	start := time.Now()
	parallelSort(items)
	took := time.Since(start)
	check(slices.IsSorted(items), "quicksort: order")
	check(sumOf(items) == sum, "quicksort: sum")
	j.report("quicksort", ms(took), "ms")
}
