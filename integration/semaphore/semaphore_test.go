// Package semaphore_test runs the semaphore on a real server: over several
// sessions, some of which are lost.
package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// open opens a session that ends soon after its client is cut off.
func open(t *testing.T, server string) *session.Session {
	t.Helper()
	return ensemble.Open(t, 3*time.Second, server)
}

func newSemaphore(t *testing.T, s *session.Session, path string, size int, opts ...recipes.Option) *semaphore.Semaphore {
	t.Helper()
	sem, err := semaphore.New(s, path, size, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return sem
}

func permits(s *semaphore.Semaphore, n int) func(context.Context) (*recipes.Grant, error) {
	return func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, n) }
}

// nothingLeft fails the test if a node is left below path.
func nothingLeft(t *testing.T, server, path string) {
	t.Helper()
	c := ensemble.Connect(t, 10*time.Second, server)
	left, _, err := c.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

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
					g, err := get(await.Context(t), 1+(i+j+k)%size)
					if errors.Is(err, recipes.ErrBusy) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					r.use(g)
					await.Release(t, g)
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
				g, err := sem.AcquireN(await.Context(t), 2)
				if err != nil {
					t.Error(err)
					return
				}
				r.use(g)
				await.Release(t, g)
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
	a, b := await.Grant(t, permits(lost, 1)), await.Grant(t, permits(lost, 1))
	c := await.Grant(t, permits(sem, 1))
	next := await.Later(t, permits(sem, 2))
	await.InLine(t, sem, 4)
	l.Hole()
	g := next.Grant(t)
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
	again := await.Later(t, permits(lost, 1))
	await.InLine(t, sem, 3)
	await.Release(t, c)
	await.Release(t, again.Grant(t))
	await.Release(t, g)
	nothingLeft(t, e.Server(0), path)
}

// The size is changed while some wait, and the change outlasts an idle time in which
// the server removes containers.
func TestResize(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{ContainerCheck: 200 * time.Millisecond})
	path := "/" + t.Name()
	sem := newSemaphore(t, open(t, e.Server(0)), path, 1)
	operator := newSemaphore(t, open(t, e.Server(0)), path, 7)
	a := await.Grant(t, permits(sem, 1))
	next := await.Later(t, permits(sem, 1))
	await.InLine(t, sem, 2)
	if err := operator.Resize(await.Context(t), 2); err != nil {
		t.Fatal(err)
	}
	b := next.Grant(t)
	await.Release(t, a)
	await.Release(t, b)
	look := ensemble.Connect(t, 10*time.Second, e.Server(0))
	for range 2 { // the first may go in a round that has passed by ours
		idle := newSemaphore(t, open(t, e.Server(0)), path+"-idle", 1)
		await.Release(t, await.Grant(t, permits(idle, 1)))
		await.Until(t, "an idle container to be removed", func() bool {
			there, _, err := look.Exists(path + "-idle")
			return err == nil && !there
		})
	}
	other := newSemaphore(t, open(t, e.Server(0)), path, 1)
	if _, err := other.Acquire(await.Context(t)); !errors.Is(err, recipes.ErrConflict) {
		t.Errorf("the size is forgotten: %v", err)
	}
	await.Release(t, await.Grant(t, permits(sem, 2)))
}
