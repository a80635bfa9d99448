//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const lockPath = "/locks/job"

// A running is a lockkeeper at work. What is held open through its pipe tells
// whether the command's group is still there: every process of it has the pipe,
// and lockkeeper itself has not.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *bufio.Reader // standard output of lockkeeper and the command
	err   strings.Builder
	group *os.File // read side of the pipe
}

// start runs script under the lock. In script, descriptor 9 is the pipe.
func start(t *testing.T, srv *zktest.Server, script string, flags ...string) *running {
	t.Helper()
	return startAfter(t, srv, ":", script, flags...)
}

// startAfter starts lockkeeper from a shell that has run prelude.
func startAfter(t *testing.T, srv *zktest.Server, prelude, script string, flags ...string) *running {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "group")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	group, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", prelude + `; exec lockkeeper "$@"`, "sh", "run", "-servers", srv.Addr()}
	args = append(args, flags...)
	args = append(args, lockPath, "--", "sh", "-c", "exec 9>"+fifo+"\n"+script)
	r := &running{t: t, cmd: exec.Command("sh", args...), group: group}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	r.cmd.Stdout, r.cmd.Stderr = w, &r.err
	r.cmd.WaitDelay = 20 * time.Second // if a stray keeps standard error
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		out.Close()
		group.Close()
	})
	return r
}

// expect reads the next line of output.
func (r *running) expect(want string) {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	if line != want+"\n" {
		r.t.Fatalf("output %q, %v, want %q; stderr: %s", line, err, want, r.err.String())
	}
}

// wantCode waits for lockkeeper to end.
func (r *running) wantCode(want int) {
	r.t.Helper()
	err := r.cmd.Wait()
	if r.cmd.ProcessState == nil || r.cmd.ProcessState.ExitCode() != want {
		r.t.Errorf("%v, want exit code %d; stderr: %s", err, want, r.err.String())
	}
}

// wantGone checks that nobody of the group is left, now.
func (r *running) wantGone() {
	r.t.Helper()
	raw, err := r.group.SyscallConn()
	if err != nil {
		r.t.Fatal(err)
	}
	raw.Read(func(fd uintptr) bool {
		n, err := syscall.Read(int(fd), make([]byte, 1))
		if n != 0 || err != nil {
			r.t.Errorf("the command's group is still there (%v)", err)
		}
		return true
	})
}

// waitGone waits until nobody of the group is left.
func (r *running) waitGone() {
	r.t.Helper()
	r.group.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := r.group.Read(make([]byte, 1)); err != io.EOF {
		r.t.Errorf("the command's group is still there (%v)", err)
	}
}

func theSession(t *testing.T, srv *zktest.Server) int64 {
	t.Helper()
	s := srv.Sessions()
	if len(s) != 1 {
		t.Fatalf("%d sessions, want 1", len(s))
	}
	return s[0].ID
}

// queued waits until n contenders stand in the queue.
func queued(t *testing.T, srv *zktest.Server, n int) {
	t.Helper()
	err := srv.WaitFor(t.Context(), func(v *zktest.View) bool { return len(v.Children(lockPath)) == n })
	if err != nil {
		t.Fatal(err)
	}
}

// next locks in another session, as another host would.
func next(t *testing.T, srv *zktest.Server) *recipes.Grant {
	t.Helper()
	sess, err := session.Open(t.Context(), session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	m, err := mutex.New(sess, lockPath)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// shortSessions is a server that grants short timeouts. Sessions may be left: a
// client that is cut off can't close its own.
func shortSessions(t *testing.T) *zktest.Server {
	return zktest.Start(t, zktest.SessionTimeouts(time.Second, time.Minute), zktest.AllowOpenSessions())
}

// stubborn is a shell with a child that do not end when told to.
const stubborn = `
(trap "" TERM; exec sleep 60) &
trap "echo told" TERM
echo ready
while kill -0 $! 2>/dev/null; do wait $!; done`

// deaf is a shell with a child that know nothing of signals.
const deaf = `sleep 60 & echo ready; wait`

// Cut off from the ensemble, which tells nobody: the group is told, and is gone
// when another gets the lock.
func TestRunCutOff(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn, "-timeout", "2s")
	r.expect("ready")
	if granted := srv.Sessions()[0].Timeout; granted != 2*time.Second {
		t.Errorf("session timeout %v, want what -timeout asked for", granted)
	}
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.wantGone()
	r.expect("told")
	r.wantCode(exitLost)
}

// The same for one that ends when told to: it can say good-bye, and the rest of
// its group is swept.
func TestRunCutOffObeys(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, `
(trap "" TERM; exec sleep 60) &
trap "echo bye; exit 0" TERM
echo ready
wait`, "-timeout", "2s")
	r.expect("ready")
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.wantGone()
	r.expect("bye")
	r.wantCode(exitLost)
}

// No grace: nothing is said before the end.
func TestRunCutOffWithoutGrace(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn, "-timeout", "1s", "-grace", "0")
	r.expect("ready")
	srv.BlackHole(theSession(t, srv), zktest.Both)
	next(t, srv)
	r.wantGone()
	r.wantCode(exitLost)
	if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
		t.Errorf("output %q, want none", rest)
	}
}

// What was taken away outright may be another's already: no grace.
func TestRunSessionExpired(t *testing.T) {
	t.Parallel()
	srv := shortSessions(t)
	r := start(t, srv, stubborn)
	r.expect("ready")
	if err := srv.Expire(theSession(t, srv)); err != nil {
		t.Fatal(err)
	}
	r.waitGone()
	r.wantCode(exitLost)
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
	r.waitGone()
	r.wantCode(exitLost)
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
	r := start(t, srv, stubborn, "-max-hold", "1s", "-grace", "500ms")
	r.expect("ready")
	r.expect("told")
	next(t, srv)
	r.wantGone()
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
	r.waitGone()
	late := start(t, srv, "echo never", "-try")
	late.wantCode(exitBusy)
}

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
	r.wantGone()
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
