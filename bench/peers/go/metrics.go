// What it costs to read the numbers of the scheduler, beside goroutines that wait. The counterpart
// of metrics.cc.
package main

import (
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

var _ = suite(
	workload{"metrics_read", metricsRead, 100_000},
)

const waitingGoroutines = 10_000

// All numbers of the scheduler that this Go has.
func schedulerSamples() []metrics.Sample {
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/sched/") {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	return samples
}

func readNs(samples []metrics.Sample, n int) float64 {
	var goroutines *metrics.Sample
	for i := range samples {
		if samples[i].Name == "/sched/goroutines:goroutines" {
			goroutines = &samples[i]
		}
	}
	enough := true
	start := time.Now()
	for i := 0; i < n; i++ {
		metrics.Read(samples)
		enough = enough && goroutines.Value.Uint64() > waitingGoroutines
	}
	ns := nsEach(time.Since(start), n)
	check(enough, "metrics_read: goroutines that wait")
	return ns
}

func metricsRead(j job) {
	var gate, finished sync.WaitGroup
	gate.Add(1)
	finished.Add(waitingGoroutines)
	for i := 0; i < waitingGoroutines; i++ {
		go func() {
			gate.Wait()
			finished.Done()
		}()
	}
	samples := schedulerSamples()
	readNs(samples, j.n/10+1)
	j.report("metrics_read", readNs(samples, j.n), "ns")
	gate.Done()
	finished.Wait()
}
