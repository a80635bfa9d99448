package rwlock_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is a server in a bubble, with read/write locks.
type env struct{ *locktest.Env }

func run(t *testing.T, f func(e *env), opts ...zktest.Option) {
	t.Helper()
	locktest.Run(t, func(e *locktest.Env) { f(&env{e}) }, opts...)
}

// rw returns the lock at locktest.Path for s.
func (e *env) rw(s *session.Session, opts ...recipes.Option) *rwlock.RWLock {
	e.T.Helper()
	l, err := rwlock.New(s, locktest.Path, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return l
}

// own returns a lock that has a session for itself.
func (e *env) own(opts ...recipes.Option) *rwlock.RWLock {
	e.T.Helper()
	return e.rw(e.Open(), opts...)
}

func (e *env) write(l *rwlock.RWLock) *recipes.Grant {
	e.T.Helper()
	return e.Start(l.Lock).Grant(time.Minute)
}

func (e *env) read(l *rwlock.RWLock) *recipes.Grant {
	e.T.Helper()
	return e.Start(l.RLock).Grant(time.Minute)
}

// later starts an attempt and waits until it is the last of n in the queue.
func (e *env) later(lock acquire, n int) *locktest.Attempt {
	e.T.Helper()
	a := e.Start(lock)
	e.Queued(n)
	return a
}

// waits checks that attempts wait, and go on doing so for a minute.
func (e *env) waits(as ...*locktest.Attempt) {
	e.T.Helper()
	time.Sleep(time.Minute)
	for i, a := range as {
		if !a.Pending() {
			_, err := a.Result()
			e.T.Errorf("attempt %d does not wait: %v", i, err)
		}
	}
}

// node returns the path of the node behind a grant.
func node(g *recipes.Grant) string {
	return recipes.HoldOf(g).(interface{ Node() string }).Node()
}

// nodeWith returns the path of the first contender's node with text in its name.
func (e *env) nodeWith(text string) string {
	e.T.Helper()
	for _, name := range e.Children(locktest.Path) {
		if strings.Contains(name, text) {
			return locktest.Path + "/" + name
		}
	}
	e.T.Fatalf("no %s in %q", text, e.Children(locktest.Path))
	return ""
}

func (e *env) listings() int {
	c := e.Requests()
	return c.Of(zktest.OpGetChildren) + c.Of(zktest.OpGetChildren2)
}

// A witness is told of every grant as soon as the program has it.
type witness struct {
	mu      sync.Mutex
	grants  map[*recipes.Grant]bool // the live ones; true: to write
	largest recipes.Token           // of all
	writers recipes.Token           // of writers
	count   int
}

// saw checks that nobody else holds together with a writer, but readers that were
// let in under it, and that tokens are in order. Those are known by their token.
// It looks at Done only: that is what a program relies on that does not ask.
func (w *witness) saw(t testing.TB, g *recipes.Grant, writes bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grants == nil {
		w.grants = make(map[*recipes.Grant]bool)
	}
	for other, wrote := range w.grants {
		select {
		case <-other.Done():
			delete(w.grants, other)
			continue
		default:
		}
		if (writes || wrote) && other.Token() != g.Token() {
			t.Errorf("grant %v (to write: %v) while grant %v (to write: %v) is held", g.Token(), writes, other.Token(), wrote)
		}
	}
	if writes && g.Token() <= w.largest || g.Token() < w.writers {
		t.Errorf("token %v (to write: %v) after %v, largest to write %v", g.Token(), writes, w.largest, w.writers)
	}
	if writes {
		w.writers = g.Token()
	}
	w.largest = max(w.largest, g.Token())
	w.grants[g] = writes
	w.count++
}
