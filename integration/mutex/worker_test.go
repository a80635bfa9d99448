package mutex_test

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

	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

// workerEnv has the job of a process that is started as a worker.
const workerEnv = "LOCKKEEPER_TEST_WORKER"

// job is what one worker process does: each of its clients takes the lock, shows
// itself to the witness, and gives the lock up, again and again.
type job struct {
	Servers  []string
	Path     string
	Witness  string
	Timeout  time.Duration
	Sessions int  // in this process
	Clients  int  // per session, all of them on one Mutex
	Cycles   int  // per client
	Keep     bool // the first holder keeps the lock until the process is killed
}

// startWorker starts a process of this test binary. It ends when its input does,
// with the test at the latest.
func startWorker(t *testing.T, j job) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd
}

// work is the worker's main function.
func work(text string) int {
	go func() { // our parent is gone
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs = make([]error, j.Sessions)
	)
	for i := range j.Sessions {
		wg.Go(func() { errs[i] = j.session(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func (j job) session(ctx context.Context) error {
	s, err := session.Open(ctx, session.Config{Servers: j.Servers, Timeout: j.Timeout})
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := mutex.New(s, j.Path)
	if err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		errs = make([]error, j.Clients)
	)
	for i := range j.Clients {
		wg.Go(func() { errs[i] = j.client(ctx, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (j job) client(ctx context.Context, m *mutex.Mutex) error {
	v, err := witness.Visit(j.Witness)
	if err != nil {
		return err
	}
	defer v.Close()
	for range j.Cycles {
		err := recipes.Do(ctx, m.Lock, func(ctx context.Context, g *recipes.Grant) error {
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
