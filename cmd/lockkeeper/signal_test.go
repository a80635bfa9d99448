//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	r := start(t, srv, fmt.Sprintf("exec child signals %d", len(forwarded)))
	r.expect("ready")
	for _, s := range forwarded {
		if err := r.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		r.expect(fmt.Sprintf("got %d", signalNumber(s)))
	}
	r.wantCode(42)
	r.waitGone()
	queued(t, srv, 0)
}

// The group gets them, not only its first process.
func TestRunForwardsToGroup(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	r := start(t, srv, deaf)
	r.expect("ready")
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
	r.waitGone()
	queued(t, srv, 0)
}

// Signals that were ignored when we were started, as nohup does, stay so.
func TestRunKeepsIgnored(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	r := startAfter(t, srv, `trap "" HUP`, "exec child signals 1")
	r.expect("ready")
	r.cmd.Process.Signal(syscall.SIGHUP)
	r.cmd.Process.Signal(syscall.SIGUSR2)
	r.expect(fmt.Sprintf("got %d", syscall.SIGUSR2))
	r.wantCode(42)
}

// While waiting, a signal ends the wait and nothing is left.
func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, s := range forwarded {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			g := next(t, srv)
			r := start(t, srv, "echo never")
			queued(t, srv, 2)
			r.cmd.Process.Signal(s)
			r.wantCode(exitSignal + signalNumber(s))
			if n := len(srv.Children(lockPath)); n != 1 {
				t.Errorf("%d contenders left, want the holder", n)
			}
			if n := len(srv.Sessions()); n != 1 {
				t.Errorf("%d sessions left, want the holder's", n)
			}
			if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
				t.Errorf("output %q, want none", rest)
			}
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// So also while there is no connection yet.
func TestRunSignalWhileConnecting(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t, zktest.AllowOpenSessions())
	srv.BlackHole(0, zktest.ToClient)
	r := start(t, srv, "echo never", "-connect-timeout", "0")
	err := srv.WaitFor(t.Context(), func(v *zktest.View) bool { return v.Requests().Of(zktest.OpConnect) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
}
