// An echo server under a client of its own process. The counterpart of echo.cc.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

var _ = suite(
	workload{"echo_1", func(j job) { echo(j, "echo_1", 1, 0) }, 1500},
	workload{"echo_100", func(j job) { echo(j, "echo_100", 100, 0) }, 1500},
	workload{"echo_1000", func(j job) { echo(j, "echo_1000", 1000, 0) }, 1500},
	workload{"echo_beside_4", func(j job) { echo(j, "echo_beside_4", 100, 4) }, 1500},
	workload{"echo_beside_16", func(j job) { echo(j, "echo_beside_16", 100, 16) }, 1500},
	workload{"idle_connections", idleConnections, 5000},
)

func serve(listener net.Listener, handle func(net.Conn)) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go handle(c)
	}
}

func echoBack(c net.Conn) {
	defer c.Close()
	bytes := make([]byte, 4096)
	for {
		n, err := c.Read(bytes)
		if err != nil {
			return
		}
		if _, err := c.Write(bytes[:n]); err != nil {
			return
		}
	}
}

func echo(j job, name string, connections, spinners int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen")
	go serve(listener, echoBack)
	for i := 0; i < spinners; i++ {
		go func() {
			for {
			}
		}()
	}
	port := listener.Addr().(*net.TCPAddr).Port
	client := exec.Command(os.Getenv("ECHO_CLIENT"), strconv.Itoa(port), strconv.Itoa(connections),
		strconv.Itoa(j.n))
	client.Stderr = os.Stderr
	said, err := client.Output()
	check(err == nil, fmt.Sprint("echo_client: ", err))
	listener.Close()
	var rate, p50, p99 float64
	n, _ := fmt.Sscan(string(said), &rate, &p50, &p99)
	check(n == 3, "echo_client's answer")
	j.report(name, rate, "req/s")
	j.report(name+"_p50", p50, "us")
	j.report(name+"_p99", p99, "us")
}

// n connections, both ends in this process, each end with a goroutine that waits for it.
func idleConnections(j job) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen")
	waiting := make(chan struct{})
	wait := func(c net.Conn) {
		var bytes [64]byte
		waiting <- struct{}{}
		c.Read(bytes[:])
	}
	before := readMemory()
	go serve(listener, wait)
	for i := 0; i < j.n; i++ {
		c, err := net.Dial("tcp", listener.Addr().String())
		check(err == nil, "dial")
		go wait(c)
		<-waiting
		<-waiting
	}
	after := readMemory()
	j.report("idle_connections", float64(after.residentBytes-before.residentBytes)/float64(2*j.n), "bytes")
}
