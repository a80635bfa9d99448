package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/redistest"
)

// Several processes increment a counter in a plain file, each time under the lock on
// Redis: no update is lost, and nothing is said.
func TestRedisCounter(t *testing.T) {
	lockkeeper := build(t)
	t.Run("Server", func(t *testing.T) {
		s := redistest.Start(t)
		password := s.AddUser(t, "counter", "~*", "&*", "+@all")
		countOnRedis(t, lockkeeper, "redis://counter:"+password+"@"+s.Addr())
		for _, key := range s.Keys(t) {
			if !strings.HasSuffix(key, "-token") { // it ends by itself
				t.Errorf("%s is left", key)
			}
		}
	})
	t.Run("Cluster", func(t *testing.T) {
		c := redistest.StartCluster(t)
		var addrs []string
		for _, s := range c.Servers {
			addrs = append(addrs, s.Addr())
		}
		countOnRedis(t, lockkeeper, "redis://"+strings.Join(addrs, ","))
	})
}

func countOnRedis(t *testing.T, lockkeeper, url string) {
	const workers, times = 4, 25
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range times {
				// Reading and writing are apart, so that two at once would show.
				cmd := exec.Command(lockkeeper, "run", "counter", "--",
					"sh", "-c", `read n <"$1"; sleep 0.002; echo $((n + 1)) >"$1"`, "sh", file)
				cmd.Env = append(os.Environ(), "LOCKKEEPER_SERVERS=", "LOCKKEEPER_REDIS="+url)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("worker %d, turn %d: %v\n%s", w, i, err, out)
					return
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintln(workers * times); string(data) != want {
		t.Errorf("the counter is at %q after %q increments", data, want)
	}
}

// The server dies while the lock is held: the command is ended, and the exit code says
// why.
func TestRedisDies(t *testing.T) {
	s := redistest.Start(t)
	cmd := exec.Command(build(t), "run", "-redis", "redis://"+s.Addr(), "-timeout", "2s", "a", "--", "sh", "-c", "echo held; exec sleep 60")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer kill.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("output %q, %v; stderr: %s", line, err, said.String())
	}
	s.Kill(t)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 117 || !strings.Contains(said.String(), "no news from the servers") {
		t.Errorf("%v, want exit code 117; stderr: %s", err, said.String())
	}
}

// A server that evicts keys is refused: it would give locks away.
func TestRedisEvicts(t *testing.T) {
	s := redistest.Start(t, "maxmemory 100mb", "maxmemory-policy allkeys-lru")
	cmd := exec.Command(build(t), "run", "-redis", "redis://"+s.Addr(), "a", "--", "echo", "never")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 118 || !strings.Contains(string(out), "want noeviction") {
		t.Errorf("%v, want exit code 118; output: %s", err, out)
	}
}
