// Package locktest has what the tests of the recipes share: a server and sessions
// in a bubble of virtual time, attempts to lock that go on by themselves, and a
// witness who sees grants that overlap.
package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Path is the lock that a test uses unless it says otherwise.
const Path = "/locks/x"

// An Env is a server in a bubble.
type Env struct {
	*zktest.Server
	T *testing.T
}

// Run runs f on virtual time. When f has returned, everything must be gone: the
// sessions that it opened are closed, and goroutines that are left fail the test.
func Run(t *testing.T, f func(e *Env), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, append([]zktest.Option{zktest.InMemory()}, opts...)...)
		f(&Env{srv, t})
	})
}

// Open opens a session, and closes it at the end.
func (e *Env) Open(edit ...func(*session.Config)) *session.Session {
	e.T.Helper()
	cfg := session.Config{Servers: []string{e.Addr()}, Dial: e.Dial}
	for _, f := range edit {
		f(&cfg)
	}
	s, err := session.Open(e.T.Context(), cfg)
	if err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { s.Close() })
	return s
}

// Mutex returns the lock at Path for s.
func (e *Env) Mutex(s *session.Session, opts ...recipes.Option) *mutex.Mutex {
	e.T.Helper()
	return e.MutexAt(s, Path, opts...)
}

// MutexAt returns the lock at path for s.
func (e *Env) MutexAt(s *session.Session, path string, opts ...recipes.Option) *mutex.Mutex {
	e.T.Helper()
	m, err := mutex.New(s, path, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return m
}

// New returns a lock at Path that has a session for itself.
func (e *Env) New(opts ...recipes.Option) *mutex.Mutex {
	e.T.Helper()
	return e.Mutex(e.Open(), opts...)
}

// Lock locks m, which must succeed within a minute.
func (e *Env) Lock(m recipes.Lockable) *recipes.Grant {
	e.T.Helper()
	return e.Start(m.Lock).Grant(time.Minute)
}

// Release releases g, which must succeed within a minute.
func (e *Env) Release(g *recipes.Grant) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	if err := g.Release(ctx); err != nil {
		e.T.Errorf("release: %v", err)
	}
}

// Empty waits until nothing is left at Path, and fails the test if
// somebody still is after five seconds.
func (e *Env) Empty() {
	e.T.Helper()
	synctest.Wait() // what is about to be sent counts, too
	ctx, cancel := context.WithTimeout(e.T.Context(), 5*time.Second)
	defer cancel()
	if e.WaitFor(ctx, func(v *zktest.View) bool { return len(v.Children(Path)) == 0 }) != nil {
		e.T.Errorf("left behind: %q", e.Children(Path))
	}
}

// contenders returns the children of Path without the one that keeps the record
// of a lock delay.
func contenders(children []string) []string {
	return slices.DeleteFunc(children, func(name string) bool { return strings.HasPrefix(name, "delay-") })
}

// Queued waits until n contenders are in the queue at Path.
func (e *Env) Queued(n int) {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	if e.WaitFor(ctx, func(v *zktest.View) bool { return len(contenders(v.Children(Path))) == n }) != nil {
		e.T.Fatalf("in the queue: %q, want %d", e.Children(Path), n)
	}
	synctest.Wait()
}

// An Attempt is a Lock under way.
type Attempt struct {
	e      *Env
	done   chan struct{}
	cancel context.CancelFunc
	g      *recipes.Grant
	err    error
	took   time.Duration
}

// Start calls lock on a goroutine of its own, under a context that Cancel ends.
func (e *Env) Start(lock func(context.Context) (*recipes.Grant, error)) *Attempt {
	return e.StartContext(e.T.Context(), lock)
}

// StartContext is Start with the context's parent given.
func (e *Env) StartContext(ctx context.Context, lock func(context.Context) (*recipes.Grant, error)) *Attempt {
	ctx, cancel := context.WithCancel(ctx)
	a := &Attempt{e: e, done: make(chan struct{}), cancel: cancel}
	began := time.Now()
	go func() {
		a.g, a.err = lock(ctx)
		if a.g != nil && ctx.Err() != nil {
			e.T.Error("granted, although the context has ended")
		}
		a.took = time.Since(began)
		if (a.g == nil) == (a.err == nil) { // case 74, in every test
			e.T.Errorf("grant %v together with error %v", a.g, a.err)
		}
		close(a.done)
	}()
	return a
}

// Cancel ends the attempt's context.
func (a *Attempt) Cancel() { a.cancel() }

// Pending reports whether the attempt still waits when nothing more happens
// without time going on.
func (a *Attempt) Pending() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// Result waits for the end of the attempt, which must come within an hour.
func (a *Attempt) Result() (*recipes.Grant, error) {
	a.e.T.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Hour):
		a.e.T.Errorf("still waiting after an hour; in the queue: %q", a.e.Children(Path))
		a.cancel()
		<-a.done
	}
	return a.g, a.err
}

// Took says how long the attempt lasted.
func (a *Attempt) Took() time.Duration {
	<-a.done
	return a.took
}

// Grant returns what was granted, which must be so within d.
func (a *Attempt) Grant(d time.Duration) *recipes.Grant {
	a.e.T.Helper()
	select {
	case <-a.done:
	case <-time.After(d):
		a.e.T.Fatalf("no grant after %v; in the queue: %q", d, a.e.Children(Path))
	}
	if a.err != nil {
		a.e.T.Fatalf("no grant: %v", a.err)
	}
	return a.g
}

// Fails checks that the attempt ends within d with an error that matches want,
// and without a grant.
func (a *Attempt) Fails(d time.Duration, want error) {
	a.e.T.Helper()
	select {
	case <-a.done:
	case <-time.After(d):
		a.e.T.Fatalf("still waiting after %v, want %v", d, want)
	}
	if !errors.Is(a.err, want) {
		a.e.T.Errorf("error %v, want %v", a.err, want)
	}
}

// A Witness is told of every grant of one lock as soon as the program has it.
type Witness struct {
	mu    sync.Mutex
	last  *recipes.Grant
	count int
}

// Saw checks that no earlier grant is live, and that tokens rise. It looks at
// Done only: that is what a program relies on that does not ask.
func (w *Witness) Saw(t testing.TB, g *recipes.Grant) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if w.last != nil {
		select {
		case <-w.last.Done():
		default:
			t.Errorf("grant %v while grant %v is held", g.Token(), w.last.Token())
		}
		if g.Token() <= w.last.Token() {
			t.Errorf("token %v after %v", g.Token(), w.last.Token())
		}
	}
	w.last = g
}

// Count returns how many grants were seen.
func (w *Witness) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Await waits for c, for at most a minute.
func Await[T any](e *Env, c <-chan T) (v T) {
	e.T.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		e.T.Fatal("nothing came for a minute")
	}
	return v
}
