// Package command runs the lockkeeper command against real servers.
package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
)

// build makes the command, with the race detector if the test has it.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lockkeeper")
	out, err := exec.Command("go", "build", "-o", file, "github.com/lockkeeper/lockkeeper/cmd/lockkeeper").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

// Three processes increment a counter in a plain file, each time under the lock.
// A lost update would mean that two held it at once. The leader is killed and
// comes back in between, several times.
func TestCounterWhileLeadersDie(t *testing.T) {
	const workers, times = 3, 200
	e := ensemble.Three(t, ensemble.Options{})
	lockkeeper := build(t)
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	progress := make(chan struct{}, workers*times)
	for w := range workers {
		wg.Go(func() {
			for i := range times {
				cmd := exec.Command(lockkeeper, "run", "-servers", strings.Join(e.Servers(), ","), "-timeout", "8s",
					"-owner", fmt.Sprintf("worker-%d", w), "/counter", "--",
					"sh", "-c", `read n <"$1"; echo $((n + 1)) >"$1"`, "sh", file)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("worker %d, turn %d: %v\n%s", w, i, err, out)
					return
				}
				progress <- struct{}{}
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()

	kills, done := 0, 0
	begin := time.Now()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		case <-progress:
			if done++; done%(workers*times/4) == 0 && done < workers*times {
				leader := e.Leader(t)
				e.Kill(t, leader)
				e.Start(t, leader)
				kills++
			}
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n != workers*times {
		t.Errorf("the counter is at %q after %d increments", data, workers*times)
	}
	t.Logf("%d increments by %d processes at a time, the leader killed %d times, in %v", n, workers, kills, time.Since(begin).Round(time.Second))
}
