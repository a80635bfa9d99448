package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes/inspect"
)

// On a real server: "show -watch" sees each flow's contenders come and go, in the order
// in which they are served.
func TestShowFlows(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	lockkeeper := build(t)
	begin := func(args ...string) (*exec.Cmd, *bufio.Scanner) {
		t.Helper()
		args = append([]string{args[0], "-servers", e.Server(0)}, args[1:]...)
		cmd := exec.Command(lockkeeper, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() }) // which ends what waits for its output
		t.Cleanup(func() { kill.Stop(); cmd.Process.Kill() })
		return cmd, bufio.NewScanner(out)
	}
	show, lines := begin("show", "-watch", "-json", "/locks/a")
	until := func(want string) {
		t.Helper()
		var seen []string
		for lines.Scan() {
			var q inspect.Queue
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				t.Fatal(err)
			}
			got := q.Recipe
			for _, c := range q.Contenders {
				got += fmt.Sprintf(" %s/%s=%d", c.Flow, c.Owner, c.Place)
			}
			if seen = append(seen, got); got == want {
				return
			}
		}
		t.Fatalf("seen %q, want %q in the end", seen, want)
	}
	until("")
	holder, _ := begin("run", "-flow", "a", "-owner", "1", "/locks/a", "--", "sleep", "600")
	until("fair a/1=0")
	var others []*exec.Cmd
	want := "fair a/1=0"
	for i, owner := range []string{"2", "3", "4"} {
		cmd, _ := begin("run", "-flow", "a", "-owner", owner, "/locks/a", "--", "true")
		others = append(others, cmd)
		want += fmt.Sprintf(" a/%s=%d", owner, i+1)
		until(want)
	}
	late, _ := begin("run", "-flow", "b", "-owner", "5", "/locks/a", "--", "true")
	until("fair a/1=0 a/2=1 b/5=2 a/3=3 a/4=4")

	others[1].Process.Signal(syscall.SIGTERM) // one that waits before the gate
	until("fair a/1=0 a/2=1 b/5=2 a/4=3")
	holder.Process.Signal(syscall.SIGTERM)
	until("fair")
	for _, cmd := range []*exec.Cmd{others[0], others[2], late} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	once, err := exec.Command(lockkeeper, "show", "-servers", e.Server(0), "/locks/a").Output()
	if err != nil || !strings.HasSuffix(string(once), "Z: fair, nobody in line\n") {
		t.Errorf("%q, %v", once, err)
	}
	show.Process.Signal(syscall.SIGINT)
	if show.Wait(); show.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want exit code 130", show.ProcessState)
	}
}
