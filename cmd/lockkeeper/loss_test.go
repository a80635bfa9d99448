//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// stubborn is a shell with a child that do not end when told to.
const stubborn = `
trap "echo told" TERM
child beat-on ready &
while kill -0 $! 2>/dev/null; do wait $!; done`

// deaf is a shell with a child that know nothing of signals.
const deaf = `child beat ready & wait`

// Cut off from the ensemble, which tells nobody: the group is told, and is dead
// before another gets the lock. (The longer the session's timeout, the longer this
// machine may stop between the two without a fault of ours.)
func TestRunCutOff(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn, "-timeout", "4s")
	r.expect("ready")
	if granted := srv.Sessions()[0].Timeout; granted != 4*time.Second {
		t.Errorf("session timeout %v, want what -timeout asked for", granted)
	}
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.mark("next")
	r.wantDeadBefore("next")
	r.expect("told")
	r.wantCode(exitLost)
}

// The same for one that ends when told to, even though it was stopped: it can say
// good-bye, and the rest of its group is swept.
func TestRunCutOffObeys(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, `
trap "echo bye; exit 0" TERM
child beat-on ready &
kill -STOP $$
wait`, "-timeout", "4s")
	r.expect("ready")
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.mark("next")
	r.wantDeadBefore("next")
	r.expect("bye")
	r.wantCode(exitLost)
}

// No grace: nothing is said before the end.
func TestRunCutOffWithoutGrace(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn, "-timeout", "3s", "-grace", "0")
	r.expect("ready")
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.mark("next")
	r.wantDeadBefore("next")
	r.wantCode(exitLost)
	if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
		t.Errorf("output %q, want none", rest)
	}
}

// What was taken away outright may be another's already: no grace. The group is dead
// when we have ended.
func TestRunSessionExpired(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn)
	r.expect("ready")
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r.wantCode(exitLost)
	r.mark("ended")
	r.wantDeadBefore("ended")
	if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
		t.Errorf("output %q, want none", rest)
	}
	if !strings.Contains(r.err.String(), "session expired") {
		t.Errorf("stderr %q does not give the reason", r.err.String())
	}
}

func TestRunOperatorDeletesNode(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, deaf)
	r.expect("ready")
	c, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Delete(lockPath+"/"+srv.Children(lockPath)[0], -1); err != nil {
		t.Fatal(err)
	}
	r.wantCode(exitLost)
	r.mark("ended")
	r.wantDeadBefore("ended")
	if left := srv.Sessions(); len(left) > 1 {
		t.Errorf("sessions left open: %+v", left)
	}
}

// A blip is no loss: the command goes on, and its own code counts.
func TestRunConnectionCut(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, `trap "exit 7" USR1; echo ready; read x <`+block(t))
	r.expect("ready")
	srv.Cut(theSession(t, srv))
	err := srv.WaitFor(t.Context(), func(v *zktest.View) bool {
		s := v.Sessions()
		return len(s) == 1 && s[0].Connected && v.Requests().Of(zktest.OpConnect) > 1
	})
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Process.Signal(syscall.SIGUSR1)
	r.wantCode(7)
	queued(t, srv, 0)
}

// block returns a file that can't be opened for reading until the test is over.
func block(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "block")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRunMaxHold(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn, "-max-hold", "5s", "-grace", "500ms")
	r.expect("ready")
	r.expect("told")
	next(t, srv)
	r.mark("next")
	r.wantDeadBefore("next")
	r.wantCode(exitLost)
}

// The delay begins with the loss: who comes then finds the lock closed.
func TestRunLockDelay(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, deaf, "-lock-delay", "1h")
	r.expect("ready")
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r.wantCode(exitLost)
	r.mark("ended")
	r.wantDeadBefore("ended")
	late := start(t, srv, "echo never", "-try")
	late.wantCode(exitBusy)
}

// Killed itself, lockkeeper takes the command's first process with it.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does that on Linux only")
	}
	srv := shortSessions(t)
	r := start(t, srv, "echo ready; exec sleep 60")
	r.expect("ready")
	r.cmd.Process.Kill()
	r.waitGone()
	var exit *exec.ExitError
	if err := r.cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("wait: %v", err)
	}
}
