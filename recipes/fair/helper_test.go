package fair_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const flows = locktest.Path + ".flows"

// An env is a server in a bubble, and what the tests of this package ask of it.
type env struct{ *locktest.Env }

// run runs f on virtual time, with a server that leaves nothing undone: in the end no
// contender is there, whichever queue it stood in, and no goroutine.
func run(t *testing.T, f func(e env), opts ...zktest.Option) {
	t.Helper()
	locktest.Run(t, func(e *locktest.Env) { f(env{e}) }, opts...)
}

// at returns the lock of s.
func (e env) at(s *session.Session, opts ...recipes.Option) *fair.Lock {
	e.T.Helper()
	l, err := fair.New(s, locktest.Path, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return l
}

// lock returns a lock that has a session for itself.
func (e env) lock(opts ...recipes.Option) *fair.Lock {
	e.T.Helper()
	return e.at(e.Open(), opts...)
}

// join takes a place that must be there to be had.
func (e env) join(l *fair.Lock) *fair.Ticket {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	t, err := l.Join(ctx)
	if err != nil {
		e.T.Fatal(err)
	}
	return t
}

// joined is join, and waits until everything is quiet.
func (e env) joined(l *fair.Lock) *fair.Ticket {
	e.T.Helper()
	t := e.join(l)
	synctest.Wait()
	return t
}

func (e env) leave(t *fair.Ticket) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	if err := t.Leave(ctx); err != nil {
		e.T.Errorf("leave: %v", err)
	}
}

// parts are the nodes below which contenders stand.
func parts(v *zktest.View) []string {
	dirs := []string{locktest.Path}
	for _, flow := range v.Children(flows) {
		dirs = append(dirs, flows+"/"+flow+"/queue", flows+"/"+flow+"/line")
	}
	return dirs
}

func everything(v *zktest.View) (nodes []string) {
	for _, dir := range parts(v) {
		for _, name := range v.Children(dir) {
			nodes = append(nodes, dir+"/"+name)
		}
	}
	return nodes
}

// view returns what f makes of the server's state.
func view[T any](e env, f func(v *zktest.View) T) (out T) {
	e.WaitFor(context.Background(), func(v *zktest.View) bool { out = f(v); return true })
	return out
}

// empty waits until no contender is left, in any queue, for at most ten seconds.
func (e env) empty() {
	e.T.Helper()
	synctest.Wait() // what is about to be sent counts, too
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if e.WaitFor(ctx, func(v *zktest.View) bool { return len(everything(v)) == 0 }) != nil {
		e.T.Errorf("left behind: %q", view(e, everything))
	}
}

// inLine returns the nodes in the lock's queue, in its order.
func inLine(v *zktest.View) []string { return sorted(v.Children(locktest.Path)) }

// before returns the nodes before the gate of a flow, in their order.
func before(v *zktest.View, flow string) []string {
	return sorted(v.Children(flows + "/" + flow + "/queue"))
}

func sorted(names []string) []string {
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.Contains(n, "lock-") })
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
	})
	return names
}

// waitLine waits until the lock's queue has n contenders.
func (e env) waitLine(n int) { e.T.Helper(); e.Queued(n) }

// waitGate waits until n contenders stand before the gate of a flow.
func (e env) waitGate(flow string, n int) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if e.WaitFor(ctx, func(v *zktest.View) bool { return len(before(v, flow)) == n }) != nil {
		e.T.Fatalf("before the gate of %q: %q, want %d", flow, view(e, func(v *zktest.View) []string { return before(v, flow) }), n)
	}
	synctest.Wait()
}

// seeds runs f for each of a table of seeds, as subtests: to run one again, give its
// name to go test -run.
func seeds(t *testing.T, n int, f func(t *testing.T, seed uint64)) {
	for seed := range uint64(n) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("again: go test ./recipes/fair -run '^%s$'", t.Name())
				}
			})
			f(t, seed)
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// now is how long that may take which needs no request.
const now = time.Millisecond

// A ticketData is what a contender's node says.
type ticketData struct{ ID, Owner, Flow, Request string }

func parseData(data []byte) (d ticketData) {
	json.Unmarshal(data, &d)
	return d
}

// expire ends a session, unless it holds: that no client can know. Then it is cut off
// for good, for long enough.
func (e env) expire(s *session.Session) {
	synctest.Wait() // nothing happens meanwhile
	id := s.ID()
	for i, name := range view(e, inLine) {
		if st, _ := e.Stat(locktest.Path + "/" + name); st.EphemeralOwner == id && i == 0 {
			e.BlackHole(id, zktest.Both)
			time.Sleep(25 * time.Second)
			e.Heal()
			return
		}
	}
	e.Expire(id)
}

// dump says who is where.
func dump(v *zktest.View) string {
	var b strings.Builder
	for _, dir := range parts(v) {
		fmt.Fprintf(&b, "\n  %s:", dir)
		for _, name := range sorted(v.Children(dir)) {
			data, _ := v.Data(dir + "/" + name)
			st, _ := v.Stat(dir + "/" + name)
			d := parseData(data)
			fmt.Fprintf(&b, " %s(%s %.4s of %x)", name, d.Flow, d.Request, st.EphemeralOwner&0xffff)
		}
	}
	return b.String()
}
