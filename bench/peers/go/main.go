// Go's side of the benches: the workloads of gofer_bench under the same names, on Go's own
// scheduler.
//
//	go_bench NAME [-n N]     lines of NAME procs=P value=V unit=U
//	go_bench --list          the names, one a line
//
// The number of processors comes from GOMAXPROCS.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

type workload struct {
	name string
	body func(job)
	n    int // the size unless the command line has another
}

// job is one call of a workload: its size, its name, and where its figures go.
type job struct {
	n    int
	name string
}

func (job) report(name string, value float64, unit string) {
	fmt.Printf("%s procs=%d value=%.3f unit=%s\n", name, runtime.GOMAXPROCS(0), value, unit)
}

var table []workload

// suite adds the workloads of one file: var _ = suite(...).
func suite(workloads ...workload) struct{} {
	table = append(table, workloads...)
	return struct{}{}
}

// check ends the process with a message unless ok: a wrong result has no speed.
func check(ok bool, what string) {
	if !ok {
		panic("wrong result: " + what)
	}
}

func nsEach(d time.Duration, count int) float64 { return float64(d.Nanoseconds()) / float64(count) }
func ms(d time.Duration) float64                { return float64(d.Nanoseconds()) / 1e6 }

func fail(message string) {
	fmt.Fprintln(os.Stderr, "go_bench:", message)
	os.Exit(2)
}

func find(name string) workload {
	for _, w := range table {
		if w.name == name {
			return w
		}
	}
	fail("no workload named " + name + " (see --list)")
	panic("unreachable")
}

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "--list" {
		for _, w := range table {
			fmt.Println(w.name)
		}
		return
	}
	if len(args) != 1 && (len(args) != 3 || args[1] != "-n") {
		fail("usage: go_bench NAME [-n N] | --list")
	}
	w := find(args[0])
	n := w.n
	if len(args) == 3 {
		var err error
		if n, err = strconv.Atoi(args[2]); err != nil || n <= 0 {
			fail("not a size: " + args[2])
		}
	}
	w.body(job{n, w.name})
}
