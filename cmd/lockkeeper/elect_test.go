//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// lead is a script that says who leads, and stays until it is told to end.
const lead = `echo $LOCKKEEPER_OWNER leads; exec sleep 60`

// candidates is queued for an election with a lock delay, which keeps another node
// there.
func candidates(t *testing.T, srv *zktest.Server, n int) {
	t.Helper()
	err := srv.WaitFor(t.Context(), func(v *zktest.View) bool {
		in := 0
		for _, name := range v.Children(lockPath) {
			if strings.Contains(name, "candidate-") {
				in++
			}
		}
		return in == n
	})
	if err != nil {
		t.Fatal(err)
	}
}

// leadAlive is the same, with another in its group that shows that it is alive.
const leadAlive = `child beat $LOCKKEEPER_OWNER leads & exec sleep 60`

// The server ends the leader's session: its command's group is dead before the next
// is elected, and the first comes back as a candidate when it is its turn.
func TestElectTakesOver(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	// What ends a session ahead of its time gives no time to act: the delay does.
	first := elect(t, srv, leadAlive, "-owner", "first", "-lock-delay", "3s")
	first.expect("first leads")
	id := theSession(t, srv)
	second := electAfter(first, srv, "echo second >&8; "+lead, "-owner", "second")
	candidates(t, srv, 2)
	if err := srv.Expire(id); err != nil {
		t.Fatal(err)
	}
	second.expect("second leads")
	first.wantDeadBefore("second")

	candidates(t, srv, 2)
	second.cmd.Process.Signal(syscall.SIGTERM)
	second.wantCode(exitSignal + 15)
	second.waitGone()
	first.expect("first leads")
	first.cmd.Process.Signal(syscall.SIGTERM)
	first.wantCode(exitSignal + 15)
	first.waitGone()
	candidates(t, srv, 0)
	if !strings.Contains(first.err.String(), "session expired") || !strings.Contains(first.err.String(), "campaigning again") {
		t.Errorf("stderr %q does not tell of the loss", first.err.String())
	}
}

// Cut off, which nobody is told: dead before the next is elected, by our own clock.
func TestElectCutOff(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	first := elect(t, srv, stubborn, "-timeout", "4s", "-once")
	first.expect("ready")
	id := theSession(t, srv)
	second := electAfter(first, srv, "echo second >&8; "+lead, "-owner", "second")
	queued(t, srv, 2)
	srv.BlackHole(id, zktest.Both)
	second.expect("second leads")
	first.wantDeadBefore("second")
	first.expect("told")
	first.wantCode(exitLost)
	second.cmd.Process.Signal(syscall.SIGTERM)
	second.wantCode(exitSignal + 15)
}

// With -once a lost term is the last.
func TestElectOnce(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := elect(t, srv, leadAlive, "-owner", "a", "-once")
	r.expect("a leads")
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r.wantCode(exitLost)
	r.mark("ended")
	r.wantDeadBefore("ended")
	if !strings.Contains(r.err.String(), "term lost") {
		t.Errorf("stderr %q does not tell of the loss", r.err.String())
	}
}

// A command that ends by itself ends the candidacy, also with the code that stands
// for a loss.
func TestElectCommandEnds(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 7, exitLost} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			r := elect(t, srv, fmt.Sprintf("echo ran; exit %d", code))
			r.expect("ran")
			r.wantCode(code)
			queued(t, srv, 0)
			if rest, _ := io.ReadAll(r.out); len(rest) > 0 || r.err.Len() > 0 {
				t.Errorf("output %q, stderr %q, want none", rest, r.err.String())
			}
		})
	}
}

// After -max-hold we come again, at the tail. The second command is started as the
// first was: what we ignore once a command runs, it does not inherit. (A shell can't
// trap what was ignored when it was started.)
func TestElectMaxHold(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := elect(t, srv, `trap "echo heeds TSTP" TSTP; kill -TSTP $$; `+lead, "-owner", "a", "-max-hold", "1s")
	for range 2 {
		r.expect("heeds TSTP")
		r.expect("a leads")
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
}

// Signals are passed on. Those that tell us to end do so when the command has
// ended in its own time, whatever its code; the others change nothing.
func TestElectForwardsSignals(t *testing.T) {
	t.Parallel()
	for _, s := range forwarded {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			r := elect(t, srv, "exec child signals 2")
			r.expect("ready")
			want := 42
			if s != syscall.SIGHUP && s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
				want = exitSignal + signalNumber(s)
			}
			r.cmd.Process.Signal(s)
			r.expect(fmt.Sprintf("got %d", signalNumber(s)))
			if n := len(srv.Children(lockPath)); n != 1 {
				t.Errorf("%d in the queue while the command runs, want 1", n)
			}
			r.cmd.Process.Signal(syscall.SIGUSR1)
			r.expect(fmt.Sprintf("got %d", syscall.SIGUSR1))
			r.wantCode(want)
			queued(t, srv, 0)
		})
	}
}

// Told to end, it does not campaign again when the term is lost then.
func TestElectLostWhileEnding(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := elect(t, srv, "child beat-on ready & exec child signals 2")
	r.expect("ready")
	r.expect("ready") // both are
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.expect("got 15")
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r.wantCode(exitSignal + 15)
	r.mark("ended")
	r.wantDeadBefore("ended")
}

// A candidate ends when it is told to, and leaves nothing; USR1 is not for it.
func TestElectSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			leader := elect(t, srv, lead, "-owner", "leader")
			leader.expect("leader leads")
			r := elect(t, srv, "echo never")
			queued(t, srv, 2)
			r.cmd.Process.Signal(syscall.SIGUSR1)
			r.cmd.Process.Signal(s)
			r.wantCode(exitSignal + signalNumber(s))
			queued(t, srv, 1)
			if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
				t.Errorf("output %q, want none", rest)
			}
			leader.cmd.Process.Signal(syscall.SIGTERM)
			leader.wantCode(exitSignal + 15)
		})
	}
}

// Each change is a line, and so is a vacancy.
func TestLeaderWatch(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	watch := exec.Command("lockkeeper", "leader", "-servers", srv.Addr(), "-watch", lockPath)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer watch.Process.Kill()
	lines := bufio.NewScanner(out)
	w := func() string { lines.Scan(); return lines.Text() }
	if got := w(); got != "vacant" {
		t.Errorf("%q, want vacant", got)
	}
	r := elect(t, srv, lead, "-owner", "a", "-value", "at home")
	r.expect("a leads")
	if got := w(); !strings.HasPrefix(got, "token=") || !strings.HasSuffix(got, ` owner=a value="at home"`) {
		t.Errorf("%q, want the leader", got)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + 15)
	if got := w(); got != "vacant" {
		t.Errorf("%q, want vacant", got)
	}
	watch.Process.Signal(syscall.SIGINT)
	if watch.Wait(); watch.ProcessState.ExitCode() != exitSignal+2 {
		t.Errorf("%v, want exit code %d", watch.ProcessState, exitSignal+2)
	}
}
