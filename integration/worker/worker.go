// Package worker has a test binary start processes of itself that use a lock and
// show themselves to a witness: what happens between processes, and when one is
// stopped or killed, needs real ones.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/child"
	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// env has the job of a process that is started as a worker.
const env = "LOCKKEEPER_TEST_WORKER"

// Job is what one worker process does: each of its clients takes the lock, shows
// itself to the witness, and gives the lock up, again and again.
type Job struct {
	Servers  []string
	Path     string
	Witness  string
	Timeout  time.Duration // after which the service gives a silent client up
	Sessions int           // in this process
	Clients  int           // per session, all of them on one lock object
	Cycles   int           // per client
	Keep     bool          // the first holder keeps the lock until the process is killed
	Patience time.Duration // the process gives up after it
}

// Open opens one session for a job. acquire is used by several goroutines.
type Open func(ctx context.Context, j Job) (acquire func(context.Context) (*recipes.Grant, error), close func(), err error)

// Main is to be called first in TestMain: in a process that was started as a
// worker it does the job, and does not return.
func Main(open Open) {
	if text := os.Getenv(env); text != "" {
		os.Exit(work(text, open))
	}
}

// Process is a running worker.
type Process struct {
	*child.Process
	cmd *exec.Cmd
}

// Start starts a process of this test binary. It ends when its input does, with
// the test at the latest.
func Start(t testing.TB, j Job) *Process {
	t.Helper()
	cmd := child.Again(t, env, j)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		p.Kill()
	})
	return &Process{p, cmd}
}

// Wait waits for the end of the process and returns why it failed, if it did.
func (p *Process) Wait() error {
	<-p.Ended()
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return errors.New(p.cmd.ProcessState.String())
}

// work is the worker's main function.
func work(text string, open Open) int {
	go func() { // our parent is gone
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Patience)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs = make([]error, j.Sessions)
	)
	for i := range j.Sessions {
		wg.Go(func() { errs[i] = j.session(ctx, open) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func (j Job) session(ctx context.Context, open Open) error {
	acquire, close, err := open(ctx, j)
	if err != nil {
		return err
	}
	defer close()
	var (
		wg   sync.WaitGroup
		errs = make([]error, j.Clients)
	)
	for i := range j.Clients {
		wg.Go(func() { errs[i] = j.client(ctx, acquire) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (j Job) client(ctx context.Context, acquire func(context.Context) (*recipes.Grant, error)) error {
	v, err := witness.Visit(j.Witness)
	if err != nil {
		return err
	}
	defer v.Close()
	for range j.Cycles {
		err := recipes.Do(ctx, acquire, func(ctx context.Context, g *recipes.Grant) error {
			if err := v.Enter(g.Token()); err != nil {
				return err
			}
			if j.Keep {
				<-ctx.Done()
			}
			return v.Leave()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
