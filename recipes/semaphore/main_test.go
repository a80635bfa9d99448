package semaphore_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An env is a server in a bubble, with a semaphore on it.
type env struct{ *locktest.Env }

func run(t *testing.T, f func(e env), opts ...zktest.Option) {
	t.Helper()
	locktest.Run(t, func(e *locktest.Env) { f(env{e}) }, opts...)
}

// sem returns the semaphore at locktest.Path for s.
func (e env) sem(s *session.Session, size int, opts ...recipes.Option) *semaphore.Semaphore {
	e.T.Helper()
	sem, err := semaphore.New(s, locktest.Path, size, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return sem
}

// fresh returns the semaphore for a session of its own.
func (e env) fresh(size int, opts ...recipes.Option) *semaphore.Semaphore {
	e.T.Helper()
	return e.sem(e.Open(), size, opts...)
}

// take starts AcquireN.
func (e env) take(s *semaphore.Semaphore, n int) *locktest.Attempt {
	return e.Start(func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, n) })
}

// try starts TryAcquireN.
func (e env) try(s *semaphore.Semaphore, n int) *locktest.Attempt {
	return e.Start(func(ctx context.Context) (*recipes.Grant, error) { return s.TryAcquireN(ctx, n) })
}

// held takes n permits, which must be free.
func (e env) held(s *semaphore.Semaphore, n int) *recipes.Grant {
	e.T.Helper()
	return e.take(s, n).Grant(time.Minute)
}

// contenders waits until n nodes of contenders are there, and nothing happens any
// more without time going on.
func (e env) contenders(n int) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	if e.WaitFor(ctx, func(v *zktest.View) bool { return len(leases(v.Children(locktest.Path))) == n }) != nil {
		e.T.Fatalf("in the queue: %q, want %d", leases(e.Children(locktest.Path)), n)
	}
	synctest.Wait()
}

// leases are the names that are contenders.
func leases(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.Contains(n, "-lease-") })
}

// node returns the path of a grant's node.
func (e env) node(g *recipes.Grant) string {
	return recipes.HoldOf(g).(interface{ Node() string }).Node()
}

func (e env) resize(s *semaphore.Semaphore, size int) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	if err := s.Resize(ctx, size); err != nil {
		e.T.Fatal(err)
	}
}

func slotsAre(t testing.TB, g *recipes.Grant, want ...int) {
	t.Helper()
	if got := g.Slots(); !slices.Equal(got, want) {
		t.Errorf("slots %v, want %v", got, want)
	}
}

// A watchman is told of every grant as soon as the program has it, and checks it
// against those that are live: not more than the size, and no slot twice.
type watchman struct {
	mu    sync.Mutex
	size  int
	live  []*recipes.Grant
	last  map[int]recipes.Token // of each slot
	count int
	most  int // permits that were held at once
}

func (w *watchman) saw(t testing.TB, g *recipes.Grant) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.live = slices.DeleteFunc(w.live, func(g *recipes.Grant) bool {
		select {
		case <-g.Done():
			return true
		default:
			return false
		}
	})
	used := len(g.Slots())
	for _, o := range w.live {
		used += len(o.Slots())
		for _, i := range g.Slots() {
			if slices.Contains(o.Slots(), i) {
				t.Errorf("slot %d is given to %v while %v has it", i, g.Token(), o.Token())
			}
		}
	}
	if w.size > 0 && used > w.size {
		t.Errorf("%d permits of %d", used, w.size)
	}
	w.most = max(w.most, used)
	if w.last == nil {
		w.last = make(map[int]recipes.Token)
	}
	for _, i := range g.Slots() {
		if w.size > 0 && i >= w.size {
			t.Errorf("slot %d of %d", i, w.size)
		}
		if g.Token() <= w.last[i] {
			t.Errorf("slot %d: token %v after %v", i, g.Token(), w.last[i])
		}
		w.last[i] = g.Token()
	}
	w.live = append(w.live, g)
}
