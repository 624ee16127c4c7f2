// Writes the traces in this folder, and beside each what Go's own reader counts in it. Tests compare the
// counts with those of `gofer trace`; they need no Go. To write all of them anew, without paths of
// this machine in them, in this folder:
//
//	go run -trimpath generate.go
//
// The numbers in the traces differ from run to run, so commit a trace and its counts together.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/trace"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Two goroutines pass a value back and forth, and ten others only end.
func channels() {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for v := range ping {
			pong <- v
		}
		close(pong)
	}()
	for i := 0; i < 50; i++ {
		ping <- i
		<-pong
	}
	close(ping)
	<-pong
	var wg sync.WaitGroup
	for i := 0; i < 10; i++ {
		wg.Add(1)
		go wg.Done()
	}
	wg.Wait()
}

// System calls that last long enough for their Ps to be taken, beside goroutines that want them.
func calls() {
	var wg sync.WaitGroup
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 4; j++ {
				ts := syscall.NsecToTimespec(2e6)
				syscall.Nanosleep(&ts, nil)
				runtime.Gosched()
			}
		}()
	}
	wg.Wait()
}

// Goroutines that compute until they are preempted, and one that sleeps beside them.
func hogs() {
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for begin := time.Now(); time.Since(begin) < 30*time.Millisecond; {
			}
		}()
	}
	for i := 0; i < 5; i++ {
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
}

// More than one generation, which last a second each.
func generations() {
	done := make(chan bool)
	go func() {
		for i := 0; i < 11; i++ {
			time.Sleep(200 * time.Millisecond)
		}
		close(done)
	}()
	<-done
}

func main() {
	runtime.GOMAXPROCS(2)
	for name, work := range map[string]func(){
		"channels": channels, "calls": calls, "hogs": hogs, "generations": generations,
	} {
		var out bytes.Buffer
		check(trace.Start(&out))
		work()
		trace.Stop()
		check(os.WriteFile(name+".trace", out.Bytes(), 0o644))
		count(name)
	}
}

var transition = regexp.MustCompile(`StateTransition Time=\d+ (Go|Proc)ID=\d+ (\w+)->(\w+) Reason="([^"]*)"`)

// Counts the changes of state of goroutines and Ps.
func count(name string) {
	parsed, err := exec.Command("go", "tool", "trace", "-d=parsed", name+".trace").Output()
	check(err)
	counts := map[string]int{}
	for _, t := range transition.FindAllStringSubmatch(string(parsed), -1) {
		key := strings.Join(t[1:4], " ")
		if t[4] != "" {
			key += ": " + t[4]
		}
		counts[key]++
	}
	keys := []string{}
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&out, "%d %s\n", counts[key], key)
	}
	check(os.WriteFile(name+".counts", []byte(out.String()), 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
