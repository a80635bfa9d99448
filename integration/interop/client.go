// Package interop runs lock clients of other libraries, kazoo in Python and
// Apache Curator in Java, as child processes that take and give up a lock as
// they are told: to see that those and ours exclude each other.
package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/child"
)

// RequireEnv names the variable which, when set to anything but "" and "0",
// turns "skipped: kazoo (or Curator) is missing" into a failure.
const RequireEnv = "LOCKKEEPER_REQUIRE_INTEROP"

// missing skips the test, or fails it where the environment says that the other
// library must be there.
func missing(t testing.TB, what string, err error) {
	t.Helper()
	if v := os.Getenv(RequireEnv); v != "" && v != "0" {
		t.Fatalf("%s is missing, and %s=%s says it must be there: %v", what, RequireEnv, v, err)
	}
	t.Skipf("%s is missing: %v", what, err)
}

// Client is a process that uses one lock. One call at a time, except for Kill.
// The process ends with the test, and also when the test process dies.
type Client struct {
	name    string
	process *child.Process
	stdin   io.WriteCloser
	answers chan string // closed at the end of the output
	stderr  tail
}

// Start runs the command and waits until it says "ready". It is for processes
// that do as those of this package: each command is a line, and so is its answer.
//
//	lock      held
//	try 2.5   held, or busy after so many seconds
//	release   released
func Start(t testing.TB, name string, cmd *exec.Cmd) *Client {
	t.Helper()
	c := &Client{name: name, answers: make(chan string, 1)}
	cmd.Stderr = &c.stderr
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.process, err = child.Start(cmd, func() { c.read(stdout) }); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(c.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer, err := c.answer(ctx); err != nil || answer != "ready" {
		t.Fatalf("%s does not connect: %q, %v", name, answer, err)
	}
	return c
}

func (c *Client) read(stdout io.Reader) {
	defer close(c.answers)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		c.answers <- lines.Text()
	}
}

// Lock waits until the process holds the lock. If it fails because ctx ended,
// the process goes on waiting, and Kill is the only way to stop it.
func (c *Client) Lock(ctx context.Context) error {
	return c.do(ctx, "lock", "held")
}

// ErrBusy is returned by Try if somebody else held the lock all the time.
var ErrBusy = errors.New("interop: lock is held by another")

// Try waits until the process holds the lock, but for d at most.
func (c *Client) Try(ctx context.Context, d time.Duration) error {
	err := c.do(ctx, fmt.Sprintf("try %g", d.Seconds()), "held")
	if a, ok := errors.AsType[unexpected](err); ok && a.answer == "busy" {
		return ErrBusy
	}
	return err
}

// Release gives the lock up and waits until that is confirmed.
func (c *Client) Release(ctx context.Context) error {
	return c.do(ctx, "release", "released")
}

// Kill ends the process with SIGKILL, if it still runs, and waits for its end.
// The server is not told: the session lives on until it expires.
func (c *Client) Kill() {
	go func() {
		for range c.answers { // nobody asks any more
		}
	}()
	c.process.Kill()
}

// Pause stops the process from running; Unpause lets it go on, and so does Kill.
func (c *Client) Pause(t testing.TB) {
	t.Helper()
	if err := c.process.Pause(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
}

// Unpause lets the process go on after Pause. It believes that no time passed,
// until it looks at a clock.
func (c *Client) Unpause(t testing.TB) {
	t.Helper()
	if err := c.process.Unpause(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
}

// unexpected is an answer other than the one hoped for.
type unexpected struct{ name, command, answer string }

func (u unexpected) Error() string {
	return fmt.Sprintf("interop: %s, told to %s, answers: %s", u.name, u.command, u.answer)
}

// Ask has the process carry out a command of its own and returns the answer.
func (c *Client) Ask(ctx context.Context, command string) (string, error) {
	if _, err := io.WriteString(c.stdin, command+"\n"); err != nil {
		return "", fmt.Errorf("interop: %s is gone: %w; it said: %s", c.name, err, c.stderr.String())
	}
	return c.answer(ctx)
}

func (c *Client) do(ctx context.Context, command, want string) error {
	answer, err := c.Ask(ctx, command)
	switch {
	case err != nil:
		return err
	case answer != want:
		return unexpected{c.name, command, answer}
	}
	return nil
}

func (c *Client) answer(ctx context.Context) (string, error) {
	select {
	case answer, ok := <-c.answers:
		if !ok {
			return "", fmt.Errorf("interop: %s is gone; it said: %s", c.name, c.stderr.String())
		}
		return answer, nil
	case <-ctx.Done():
		return "", fmt.Errorf("interop: %s: %w; it said: %s", c.name, context.Cause(ctx), c.stderr.String())
	}
}

// tail keeps the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-4096):]
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.text))
}
