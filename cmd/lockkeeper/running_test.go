//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	beats string   // the file in which the group shows that it is alive
}

// start runs script under the lock. In script, descriptor 9 is the pipe, and 8 is where
// child beat writes.
func start(t *testing.T, srv *zktest.Server, script string, flags ...string) *running {
	t.Helper()
	return startAfter(t, srv, ":", script, flags...)
}

// startAfter starts lockkeeper from a shell that has run prelude.
func startAfter(t *testing.T, srv *zktest.Server, prelude, script string, flags ...string) *running {
	t.Helper()
	return launch(t, []string{"-servers", srv.Addr()}, newBeats(t), prelude, "run", script, flags...)
}

// elect runs script while elected.
func elect(t *testing.T, srv *zktest.Server, script string, flags ...string) *running {
	t.Helper()
	return launch(t, []string{"-servers", srv.Addr()}, newBeats(t), ":", "elect", script, flags...)
}

// electAfter is elect for one that is to come after r: it writes into the same file.
func electAfter(r *running, srv *zktest.Server, script string, flags ...string) *running {
	r.t.Helper()
	return launch(r.t, []string{"-servers", srv.Addr()}, r.beats, ":", "elect", script, flags...)
}

func newBeats(t *testing.T) string { return filepath.Join(t.TempDir(), "beats") }

// launch starts lockkeeper; where says where the lock is.
func launch(t *testing.T, where []string, beats, prelude, subcommand, script string, flags ...string) *running {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "group")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	group, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", prelude + `; exec lockkeeper "$@"`, "sh", subcommand}
	args = append(append(args, where...), flags...)
	args = append(args, lockPath, "--", "sh", "-c", "exec 8>>"+beats+" 9>"+fifo+"\n"+script)
	r := &running{t: t, cmd: exec.Command("sh", args...), group: group, beats: beats}
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

// waitGone waits until nobody of the group is left. Who was killed lets go of its
// files when it is next scheduled, which on a busy machine is after our own end.
func (r *running) waitGone() {
	r.t.Helper()
	r.group.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := r.group.Read(make([]byte, 1)); err != io.EOF {
		r.t.Errorf("the command's group is still there (%v)", err)
	}
}

// mark writes a line among the beats: what comes after it has happened later.
func (r *running) mark(line string) {
	r.t.Helper()
	f, err := os.OpenFile(r.beats, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		f.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// wantDeadBefore checks that the group, which beat, did nothing any more when the mark
// was written. Who was killed does nothing, even where it has yet to let go of its
// files: that is waited for, so that no beat can come after we have looked.
func (r *running) wantDeadBefore(mark string) {
	r.t.Helper()
	r.waitGone()
	all, err := os.ReadFile(r.beats)
	if err != nil {
		r.t.Fatal(err)
	}
	before, after, marked := strings.Cut("\n"+string(all), "\n"+mark+"\n")
	if !marked || !strings.Contains(before, beat) {
		r.t.Fatalf("%d bytes of beats before %q (%v)", len(before), mark, marked)
	}
	if n := strings.Count(after, beat); n > 0 {
		r.t.Errorf("the command's group was alive after %q: %d beats", mark, n)
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
	err := srv.WaitFor(t.Context(), func(v *zktest.View) bool {
		contenders := 0
		for _, name := range v.Children(lockPath) {
			if !strings.HasPrefix(name, "delay-") { // which keeps a lock delay
				contenders++
			}
		}
		return contenders == n
	})
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
