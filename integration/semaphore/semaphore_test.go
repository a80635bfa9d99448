// Package semaphore_test runs the semaphore on a real server: over several
// sessions, some of which are lost.
package semaphore_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// patience bounds what has to happen some time, and decides about nothing else.
const patience = time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, server string) *session.Session {
	t.Helper()
	s, err := session.Open(bounded(t), session.Config{
		Servers: []string{server},
		Timeout: 3 * time.Second,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newSemaphore(t *testing.T, s *session.Session, path string, size int, opts ...recipes.Option) *semaphore.Semaphore {
	t.Helper()
	sem, err := semaphore.New(s, path, size, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return sem
}

func acquire(t *testing.T, s *semaphore.Semaphore, n int) *recipes.Grant {
	t.Helper()
	g, err := s.AcquireN(bounded(t), n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, g *recipes.Grant) {
	t.Helper()
	if err := g.Release(bounded(t)); err != nil {
		t.Error(err)
	}
}

// later acquires while the test does something else.
func later(t *testing.T, s *semaphore.Semaphore, n int) <-chan *recipes.Grant {
	granted := make(chan *recipes.Grant, 1)
	ctx := bounded(t)
	go func() {
		g, err := s.AcquireN(ctx, n)
		if err != nil {
			t.Error(err)
		}
		granted <- g
	}()
	return granted
}

// inLine waits until n contenders hold or wait.
func inLine(t *testing.T, s *semaphore.Semaphore, n int) {
	t.Helper()
	ctx := bounded(t)
	for {
		c, err := s.Contenders(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(c) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// nothingLeft fails the test if a node is left below path.
func nothingLeft(t *testing.T, server, path string) {
	t.Helper()
	c, _, err := zk.Connect([]string{server}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, _, err := c.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// removed waits until the server has removed a node.
func removed(t *testing.T, server, path string) {
	t.Helper()
	c, _, err := zk.Connect([]string{server}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for ctx := bounded(t); ; time.Sleep(10 * time.Millisecond) {
		there, _, err := c.Exists(path)
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s is still there: %v", path, context.Cause(ctx))
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// A rack has one place for each slot. Two that are in one place at a time, or more
// than there are places, are an error.
type rack struct {
	t      *testing.T
	places []atomic.Bool
	in     atomic.Int64
	grants atomic.Int64
}

func (r *rack) use(g *recipes.Grant) {
	slots := g.Slots()
	if in := r.in.Add(int64(len(slots))); in > int64(len(r.places)) {
		r.t.Errorf("%d permits of %d", in, len(r.places))
	}
	for _, i := range slots {
		if i >= len(r.places) || r.places[i].Swap(true) {
			r.t.Errorf("slot %d is given twice, or there is none", i)
		}
	}
	time.Sleep(time.Millisecond)
	for _, i := range slots {
		r.places[i].Store(false)
	}
	r.in.Add(-int64(len(slots)))
	r.grants.Add(1)
}

func TestSeveralSessions(t *testing.T) {
	const size, sessions, workers = 5, 6, 3
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	e := ensemble.Single(t, ensemble.Options{})
	path := "/" + t.Name()
	r := &rack{t: t, places: make([]atomic.Bool, size)}
	var wg sync.WaitGroup
	for i := range sessions {
		sem := newSemaphore(t, open(t, e.Server(0)), path, size)
		for j := range workers {
			wg.Go(func() {
				for k := range rounds {
					get := sem.AcquireN
					if (i+j+k)%4 == 0 {
						get = sem.TryAcquireN
					}
					g, err := get(bounded(t), 1+(i+j+k)%size)
					if errors.Is(err, recipes.ErrBusy) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					r.use(g)
					release(t, g)
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d grants", r.grants.Load())
	if r.grants.Load() < sessions*workers*int64(rounds)/2 {
		t.Errorf("only %d grants", r.grants.Load())
	}
	nothingLeft(t, e.Server(0), path)
}

// case 66 on a real server.
func TestTwoTakeTwoOfTwo(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path := "/" + t.Name()
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	r := &rack{t: t, places: make([]atomic.Bool, 2)}
	var wg sync.WaitGroup
	for range 2 {
		sem := newSemaphore(t, open(t, e.Server(0)), path, 2)
		wg.Go(func() {
			for range rounds {
				g, err := sem.AcquireN(bounded(t), 2)
				if err != nil {
					t.Error(err)
					return
				}
				r.use(g)
				release(t, g)
			}
		})
	}
	wg.Wait()
	nothingLeft(t, e.Server(0), path)
}

// case 68: a client is cut off. Its grants end before the permits are given to
// others, and they come back.
func TestPermitsOfAClientThatIsCutOffComeBack(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path := "/" + t.Name()
	l := link.New(t, e.Server(0))
	told := make(chan recipes.Revocation, 2)
	lost := newSemaphore(t, open(t, l.Addr()), path, 3, recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
	sem := newSemaphore(t, open(t, e.Server(0)), path, 3)
	a, b := acquire(t, lost, 1), acquire(t, lost, 1)
	c := acquire(t, sem, 1)
	next := later(t, sem, 2)
	inLine(t, sem, 4)
	l.Hole()
	g := <-next
	if g == nil {
		return
	}
	for _, old := range []*recipes.Grant{a, b} {
		select {
		case <-old.Done():
		default:
			t.Errorf("token %v was granted while %v was live", g.Token(), old.Token())
		}
		if r := <-told; !errors.Is(r.Cause, recipes.ErrSessionLost) {
			t.Error(r.Cause)
		}
	}
	if s := g.Slots(); len(s) != 2 || s[0] != 0 || s[1] != 1 {
		t.Errorf("slots %v", s)
	}
	l.Heal()
	again := later(t, lost, 1)
	inLine(t, sem, 3)
	release(t, c)
	release(t, <-again)
	release(t, g)
	nothingLeft(t, e.Server(0), path)
}

// The size is changed while some wait, and the change outlasts an idle time in which
// the server removes containers.
func TestResize(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{ContainerCheck: 200 * time.Millisecond})
	path := "/" + t.Name()
	sem := newSemaphore(t, open(t, e.Server(0)), path, 1)
	operator := newSemaphore(t, open(t, e.Server(0)), path, 7)
	a := acquire(t, sem, 1)
	next := later(t, sem, 1)
	inLine(t, sem, 2)
	if err := operator.Resize(bounded(t), 2); err != nil {
		t.Fatal(err)
	}
	b := <-next
	if b == nil {
		return
	}
	release(t, a)
	release(t, b)
	for range 2 { // the first may go in a round that has passed by ours
		idle := newSemaphore(t, open(t, e.Server(0)), path+"-idle", 1)
		release(t, acquire(t, idle, 1))
		removed(t, e.Server(0), path+"-idle")
	}
	other := newSemaphore(t, open(t, e.Server(0)), path, 1)
	if _, err := other.Acquire(bounded(t)); !errors.Is(err, recipes.ErrConflict) {
		t.Errorf("the size is forgotten: %v", err)
	}
	release(t, acquire(t, sem, 2))
}
