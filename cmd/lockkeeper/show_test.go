//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A show is "lockkeeper show -watch" at work.
type show struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startShow(t *testing.T, srv *zktest.Server, flags ...string) *show {
	t.Helper()
	args := append([]string{"show", "-servers", srv.Addr(), "-watch"}, flags...)
	s := &show{t: t, cmd: exec.Command("lockkeeper", append(args, lockPath)...)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	s.lines = bufio.NewScanner(out)
	return s
}

func (s *show) line() string {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("no more output: %v", s.lines.Err())
	}
	return s.lines.Text()
}

// end interrupts it, and checks that it ends as others that are interrupted.
func (s *show) end(sig syscall.Signal) {
	s.t.Helper()
	s.cmd.Process.Signal(sig)
	for s.lines.Scan() {
		s.t.Errorf("in the end: %q", s.lines.Text())
	}
	if s.cmd.Wait(); s.cmd.ProcessState.ExitCode() != exitSignal+int(sig) {
		s.t.Errorf("%v, want exit code %d", s.cmd.ProcessState, exitSignal+int(sig))
	}
}

// Each change is shown, with an empty line between; and over a lost session.
func TestShowWatch(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	s := startShow(t, srv)
	if got := s.line(); !strings.HasSuffix(got, "Z: nobody in line") {
		t.Errorf("%q", got)
	}
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r := start(t, srv, "echo ready; read x <"+block(t), "-owner", "a")
	r.expect("ready")
	for i, want := range []string{"", ": mutex, 1 holds, 0 wait", "PLACE  STATE    OWNER  TOKEN", "0      holding  a      "} {
		if got := s.line(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
	for _, want := range []string{"", ": mutex, nobody in line"} {
		if got := s.line(); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s.end(syscall.SIGTERM)
	queued(t, srv, 0)
	if left := srv.Sessions(); len(left) > 0 {
		t.Errorf("sessions left open: %+v", left)
	}
}

// Programs get an object a line.
func TestShowWatchJSON(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	s := startShow(t, srv, "-json")
	read := func() (q inspect.Queue) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.line()), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := read(); q.Path != lockPath || q.Recipe != "" || len(q.Contenders) > 0 {
		t.Errorf("%+v", q)
	}
	r := start(t, srv, "echo $LOCKKEEPER_TOKEN; read x <"+block(t), "-owner", "a", "-flow", "f")
	token, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	q := read()
	for len(q.Contenders) == 0 || !q.Contenders[0].Holding { // before it came through the gate
		q = read()
	}
	c := q.Contenders[0]
	if q.Recipe != inspect.Fair || c.Owner != "a" || c.Flow != "f" || c.Token.String()+"\n" != token || c.Place != 0 {
		t.Errorf("%+v, want token %s", q, token)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
	for len(q.Contenders) > 0 {
		q = read()
	}
	s.end(syscall.SIGINT)
}
