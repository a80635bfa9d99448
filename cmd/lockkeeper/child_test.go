//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// beat is the line by which a child shows that it is alive.
const beat = "beat"

// child is the command that tests have run under a lock.
func child() {
	switch os.Args[1] {
	case "exit": // N
		code, _ := strconv.Atoi(os.Args[2])
		os.Exit(code)
	case "env":
		for _, name := range os.Args[2:] {
			fmt.Printf("%s=%s\n", name, os.Getenv(name))
		}
	case "die": // of signal N
		n, _ := strconv.Atoi(os.Args[2])
		signal.Reset(syscall.Signal(n))
		syscall.Kill(os.Getpid(), syscall.Signal(n))
		select {}
	case "beat", "beat-on": // TEXT…: shows on descriptor 8 that it is alive; beat-on ignores SIGTERM
		if os.Args[1] == "beat-on" {
			signal.Ignore(syscall.SIGTERM)
		}
		beats := os.NewFile(8, "beats")
		end := time.Now().Add(time.Minute) // whatever goes wrong with the test
		for first := true; time.Now().Before(end); first = false {
			if _, err := beats.WriteString(beat + "\n"); err != nil {
				os.Exit(1)
			}
			if first {
				fmt.Println(strings.Join(os.Args[2:], " "))
			}
			time.Sleep(time.Millisecond)
		}
	case "signals": // says which come, and ends with the N-th
		n, _ := strconv.Atoi(os.Args[2])
		c := make(chan os.Signal, 16)
		signal.Notify(c, forwarded...)
		fmt.Println("ready")
		for range n {
			fmt.Println("got", signalNumber(<-c))
		}
		os.Exit(42)
	}
}
