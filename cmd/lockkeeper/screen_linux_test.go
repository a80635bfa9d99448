package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// pseudoTerminal returns both ends of a terminal with that many columns and rows.
func pseudoTerminal(t *testing.T, columns, rows uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// On a terminal the table is drawn anew in its place, cut to what fits; ages grow
// while nothing happens, but not while there is no connection.
func TestShowWatchOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 80
	srv := zktest.Start(t, zktest.AllowOpenSessions())
	r := start(t, srv, "echo ready; read x <"+block(t), "-owner", "a")
	r.expect("ready")
	ours, theirs := pseudoTerminal(t, columns, 24)
	cmd := exec.Command("lockkeeper", "show", "-servers", srv.Addr(), "-watch", lockPath)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.Stdout = theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop() // which ends the reads below
	defer cmd.Process.Kill()
	var out strings.Builder
	until := func(want string) { // more was drawn, with that in it
		t.Helper()
		buf := make([]byte, 4096)
		for from := out.Len(); !strings.Contains(out.String()[from:], want); {
			n, err := ours.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q, want %q", err, out.String()[from:], want)
			}
			out.Write(buf[:n])
		}
	}
	until("\r0      holding  a      ")
	until("\x1b[3A\r" + lockPath) // a second later
	second := start(t, srv, ":", "-owner", "somebody with a name that is rather long")
	until("\r1      waiting  \"somebody with a name")
	until("\x1b[4A\r" + lockPath)
	srv.Refuse(true)
	srv.Cut(0)
	until("1 waits (no connection)")
	srv.Heal()
	until("1 waits\x1b[K")
	for line := range strings.SplitSeq(out.String(), "\n") {
		line = line[strings.LastIndexByte(strings.TrimSuffix(line, "\r"), '\r')+1:]
		if text, _, ok := strings.Cut(line, "\x1b[K"); ok && len(text) > columns {
			t.Errorf("%q is longer than the screen is wide", text)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignal+15 {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, exitSignal+15)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
	second.wantCode(0)
}
