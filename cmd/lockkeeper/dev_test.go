//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The server says how to reach it, serves, and ends when it is interrupted.
func TestDev(t *testing.T) {
	t.Parallel()
	dev := exec.Command("lockkeeper", "dev", "-addr", "127.0.0.1:0")
	dev.Stderr = os.Stderr
	out, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	defer dev.Process.Kill()
	var servers string
	lines := bufio.NewScanner(out)
	for servers == "" && lines.Scan() {
		_, servers, _ = strings.Cut(lines.Text(), "export "+envServers+"=")
	}
	run := exec.Command("lockkeeper", "run", "/locks/a", "true")
	run.Env = append(os.Environ(), envServers+"="+servers)
	if msg, err := run.CombinedOutput(); err != nil {
		t.Errorf("run against %q: %v: %s", servers, err, msg)
	}
	dev.Process.Signal(syscall.SIGINT)
	for lines.Scan() {
	}
	if err := dev.Wait(); err != nil {
		t.Errorf("interrupted: %v, want success", err)
	}
}
