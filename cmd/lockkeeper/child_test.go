//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

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
