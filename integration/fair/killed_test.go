package fair_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/child"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/session"
)

// victimEnv has the job of a process that is started to be killed.
const victimEnv = "LOCKKEEPER_TEST_VICTIM"

// job is what it does: it joins the queue, says so and under which session, says when
// it holds, and keeps the lock.
type job struct {
	Servers []string
	Path    string
	Flow    string
	Weight  int
	Timeout time.Duration
}

// victim is its main function.
func victim(text string) int {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "victim:", err)
	return 1
}

func (j job) run(ctx context.Context) error {
	s, err := session.Open(ctx, session.Config{Servers: j.Servers, Timeout: j.Timeout})
	if err != nil {
		return err
	}
	l, err := fair.New(s, j.Path, fair.Flow(j.Flow, j.Weight))
	if err != nil {
		return err
	}
	t, err := l.Join(ctx)
	if err != nil {
		return err
	}
	fmt.Println("joined", s.ID(), s.Timeout())
	if _, err := t.Wait(ctx); err != nil {
		return err
	}
	fmt.Println("holds")
	io.Copy(io.Discard, os.Stdin) // our parent is gone
	return io.EOF
}

// A process is a victim, seen from outside.
type process struct {
	cmd     *exec.Cmd
	session int64
	lines   *bufio.Scanner
}

// startVictim returns when it has joined.
func startVictim(t *testing.T, j job) *process {
	t.Helper()
	p := &process{cmd: child.Again(t, victimEnv, j)}
	p.cmd.Stderr = t.Output()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); p.kill() })
	p.lines = bufio.NewScanner(stdout)
	var negotiated string
	if !p.lines.Scan() {
		t.Fatal("the victim says nothing")
	}
	if n, err := fmt.Sscanf(p.lines.Text(), "joined %d %s", &p.session, &negotiated); n != 2 {
		t.Fatalf("the victim says %q: %v", p.lines.Text(), err)
	}
	if negotiated != j.Timeout.String() {
		t.Fatalf("its session's timeout is %s, not %v", negotiated, j.Timeout)
	}
	return p
}

// kill is SIGKILL: nobody is told.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

// The first of a flow is killed, wherever it stands, with others of its flow and of
// other flows around it. Nobody waits for longer than its session takes to end.
func TestFirstOfAFlowKilled(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	for _, flow := range []struct {
		name   string
		weight int
	}{{"a", 1}, {"b", 2}, {"c", 1}} {
		for _, where := range []string{"BeforeTheGate", "FirstInLine", "Holding"} {
			t.Run(flow.name+"/"+where, func(t *testing.T) { killFirst(t, e, flow.name, flow.weight, where) })
		}
	}
}

// stall bounds what may pass from the end of the victim's session, by the server's
// word, until all others have had the lock. It is there to tell a hand-over from
// a wait that nobody ends: such a one looks again by itself after 30 s at the earliest.
const stall = 15 * time.Second

func killFirst(t *testing.T, e *ensemble.Ensemble, flow string, weight int, where string) {
	const timeout = 2 * time.Second // of the victim's session
	path := fmt.Sprintf("/killed-%s-%s", flow, where)
	look := ensemble.Connect(t, 10*time.Second, e.Servers()...)
	mine := ensemble.Open(t, 30*time.Second, e.Servers()...)
	same := newLock(t, mine, path, fair.Flow(flow, weight))
	var tickets []*fair.Ticket
	fill := func() { // the flow's places in the lock's queue
		for range weight {
			tickets = append(tickets, join(t, same))
		}
		await.Until(t, "the line to be full", func() bool { return children(t, look, line(path, flow)) == weight })
	}
	start := func() *process {
		return startVictim(t, job{e.Servers(), path, flow, weight, timeout})
	}

	var first *recipes.Grant
	var p *process
	switch where {
	case "BeforeTheGate":
		first = await.Grant(t, newLock(t, mine, path).Lock)
		fill()
		p = start()
		await.Until(t, "the victim to stand before the gate", func() bool { return owners(t, look, gateQueue(path, flow))[p.session] })
	case "FirstInLine":
		first = await.Grant(t, newLock(t, mine, path).Lock)
		p = start()
		await.Until(t, "the victim to stand in line", func() bool {
			return owners(t, look, mainQueue(path))[p.session] && !owners(t, look, gateQueue(path, flow))[p.session]
		})
		for range weight - 1 {
			tickets = append(tickets, join(t, same))
		}
	case "Holding":
		p = start()
		if !p.lines.Scan() || p.lines.Text() != "holds" {
			t.Fatalf("the victim does not hold: %q", p.lines.Text())
		}
		await.Until(t, "the victim to be out of its flow's line", func() bool { return children(t, look, line(path, flow)) == 0 })
		fill()
	}
	tickets = append(tickets, join(t, same)) // behind it, before the gate
	for _, other := range []string{"x", "y"} {
		l := newLock(t, mine, path, fair.Flow(other, 1))
		tickets = append(tickets, join(t, l), join(t, l))
	}

	p.kill()
	killed := time.Now()
	gone := make(chan time.Time, 1)
	go func() { // the server's word
		for there := true; there && t.Context().Err() == nil; time.Sleep(5 * time.Millisecond) {
			there = false
			for _, dir := range []string{mainQueue(path), gateQueue(path, flow)} {
				names, _, _ := look.Children(dir)
				for _, name := range names {
					_, stat, err := look.Exists(dir + "/" + name)
					there = there || err == nil && stat.EphemeralOwner == p.session
				}
			}
		}
		gone <- time.Now()
	}()
	ctx := await.Context(t)
	var wg sync.WaitGroup
	for i, ticket := range tickets {
		wg.Go(func() {
			g, err := ticket.Wait(ctx)
			if err != nil {
				t.Errorf("ticket %d: %v", i, err)
				return
			}
			if err := g.Release(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if first != nil {
		await.Release(t, first)
	}
	wg.Wait()
	all, end := time.Now(), <-gone
	t.Logf("session over %v after the kill, all others served %v after it", end.Sub(killed), all.Sub(killed))
	if late := all.Sub(end); late > stall {
		t.Errorf("served %v after the victim's session was over", late)
	}
	nothingLeft(t, look, path, flow, "x", "y")
}

func children(t *testing.T, c *zk.Conn, dir string) int {
	t.Helper()
	there, stat, err := c.Exists(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !there {
		return 0
	}
	return int(stat.NumChildren)
}
