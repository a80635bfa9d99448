// Package rwlock_test runs the read/write lock on real servers, beside Apache
// Curator's.
package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/interop"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
)

const (
	timeout = 10 * time.Second
	// soon is when a try is given up; a lock that is not respected is had long before.
	soon = time.Second
)

// side is one side of a lock, ours or theirs.
type side interface {
	lock(ctx context.Context) error
	release(ctx context.Context) error
}

type ours struct {
	acquire func(context.Context) (*recipes.Grant, error)
	g       *recipes.Grant
}

func (o *ours) lock(ctx context.Context) (err error) {
	o.g, err = o.acquire(ctx)
	return err
}

func (o *ours) release(ctx context.Context) error { return o.g.Release(ctx) }

type theirs struct{ c *interop.Client }

func (o theirs) lock(ctx context.Context) error    { return o.c.Lock(ctx) }
func (o theirs) release(ctx context.Context) error { return o.c.Release(ctx) }

type test struct {
	*testing.T
	ctx  context.Context
	e    *ensemble.Ensemble
	path string
	look *rwlock.RWLock
}

func newTest(t *testing.T, e *ensemble.Ensemble) *test {
	return &test{T: t, ctx: await.Context(t), e: e, path: e.LockPath(t)}
}

func (t *test) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// later locks in the background, as the n-th in line.
func (t *test) later(s side, n int) <-chan error {
	t.Helper()
	got := make(chan error, 1)
	go func() { got <- s.lock(t.ctx) }()
	await.InLine(t, t.look, n)
	return got
}

// waits waits until those contenders, and nobody else, wait for their turn.
func (t *test) waits(got ...<-chan error) {
	t.Helper()
	interop.Waits(t, t.e, t.path, got...)
}

// one returns a lock on a session of its own.
func (t *test) one(server, path string) *rwlock.RWLock {
	t.Helper()
	l, err := rwlock.New(ensemble.Open(t, timeout, server), path)
	t.ok(err)
	return l
}

// case 59: Curator's InterProcessReadWriteLock and ours exclude each other as if they
// were one, whoever is first, and share where readers share.
func TestCurator(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	server := e.Server(0)

	t.Run("Pairs", func(tt *testing.T) {
		t := newTest(tt, e)
		path := t.path
		l := t.one(server, path)
		t.look = t.one(server, path)
		ourRead, ourWrite := &ours{acquire: l.RLock}, &ours{acquire: l.Lock}
		theirRead := theirs{interop.CuratorRead(t, server, path, timeout)}
		theirWrite := theirs{interop.CuratorWrite(t, server, path, timeout)}
		exclude := func(first, second side) {
			t.Helper()
			t.ok(first.lock(t.ctx))
			got := t.later(second, 2)
			t.waits(got)
			t.ok(first.release(t.ctx))
			t.ok(<-got)
			t.ok(second.release(t.ctx))
		}
		for range 2 { // on a fresh directory, and on one that has been used
			exclude(ourWrite, theirWrite)
			exclude(theirWrite, ourWrite)
			exclude(ourWrite, theirRead)
			exclude(theirWrite, ourRead)
			exclude(ourRead, theirWrite)
			exclude(theirRead, ourWrite)
			for _, pair := range [][2]side{{ourRead, theirRead}, {theirRead, ourRead}} {
				t.ok(pair[0].lock(t.ctx))
				t.ok(pair[1].lock(t.ctx))
				await.InLine(t, t.look, 2)
				t.ok(pair[0].release(t.ctx))
				t.ok(pair[1].release(t.ctx))
			}
		}
	})

	t.Run("Try", func(tt *testing.T) {
		t := newTest(tt, e)
		path := t.path
		l := t.one(server, path)
		theirRead, theirWrite := interop.CuratorRead(t, server, path, timeout), interop.CuratorWrite(t, server, path, timeout)
		t.ok(theirRead.Lock(t.ctx))
		if _, err := l.TryLock(t.ctx); !errors.Is(err, recipes.ErrBusy) {
			t.Fatal(err)
		}
		g, err := l.TryRLock(t.ctx)
		t.ok(err)
		t.ok(theirRead.Release(t.ctx))
		if err := theirWrite.Try(t.ctx, soon); !errors.Is(err, interop.ErrBusy) {
			t.Fatal(err)
		}
		t.ok(g.Release(t.ctx))
		t.ok(theirWrite.Lock(t.ctx))
		for _, try := range []func(context.Context) (*recipes.Grant, error){l.TryLock, l.TryRLock} {
			if _, err := try(t.ctx); !errors.Is(err, recipes.ErrBusy) {
				t.Fatal(err)
			}
		}
		t.ok(theirWrite.Release(t.ctx))
	})

	// case 61: a line of both kinds from both libraries is served in order of arrival.
	t.Run("Line", func(tt *testing.T) {
		t := newTest(tt, e)
		path := t.path
		l := t.one(server, path)
		t.look = t.one(server, path)
		first := &ours{acquire: l.Lock}
		line := []side{
			theirs{interop.CuratorRead(t, server, path, timeout)}, &ours{acquire: t.one(server, path).RLock}, // together
			theirs{interop.CuratorWrite(t, server, path, timeout)},
			&ours{acquire: t.one(server, path).RLock}, theirs{interop.CuratorRead(t, server, path, timeout)}, // together
			&ours{acquire: t.one(server, path).Lock},
		}
		t.ok(first.lock(t.ctx))
		var got []<-chan error
		for i, s := range line {
			got = append(got, t.later(s, i+2))
		}
		t.waits(got...)
		t.ok(first.release(t.ctx))
		for _, group := range [][2]int{{0, 2}, {2, 3}, {3, 5}, {5, 6}} {
			for i := group[0]; i < group[1]; i++ {
				t.ok(<-got[i])
			}
			t.waits(got[group[1]:]...)
			for i := group[0]; i < group[1]; i++ {
				t.ok(line[i].release(t.ctx))
			}
		}
	})

	// case 62: who writes with ours goes on reading: Curator's readers behind get in,
	// its writer waits, wherever it stands.
	t.Run("Downgrade", func(tt *testing.T) {
		t := newTest(tt, e)
		path := t.path
		l := t.one(server, path)
		t.look = t.one(server, path)
		theirRead := theirs{interop.CuratorRead(t, server, path, timeout)}
		theirWrite := theirs{interop.CuratorWrite(t, server, path, timeout)}
		for _, readerFirst := range []bool{true, false} {
			w, err := l.Lock(t.ctx)
			t.ok(err)
			var reads, writes <-chan error
			if readerFirst {
				reads = t.later(theirRead, 2)
				writes = t.later(theirWrite, 3)
			} else {
				writes = t.later(theirWrite, 2)
				reads = t.later(theirRead, 3)
			}
			r, err := l.RLock(w.Context(t.ctx))
			t.ok(err)
			t.waits(reads, writes)
			t.ok(w.Release(t.ctx))
			if readerFirst {
				t.ok(<-reads)
				t.waits(writes)
				t.ok(theirRead.release(t.ctx))
				t.waits(writes)
			} else {
				t.waits(writes, reads)
			}
			t.ok(r.Verify(t.ctx))
			t.ok(r.Release(t.ctx))
			t.ok(<-writes)
			t.ok(theirWrite.release(t.ctx))
			if !readerFirst {
				t.ok(<-reads)
				t.ok(theirRead.release(t.ctx))
			}
		}
	})

	// A mutex, ours or Curator's, is another recipe.
	t.Run("Mutex", func(tt *testing.T) {
		t := newTest(tt, e)
		path := t.path
		l := t.one(server, path)
		m := interop.CuratorMutex(t, server, path, timeout)
		t.ok(m.Lock(t.ctx))
		if _, err := l.Lock(t.ctx); !errors.Is(err, recipes.ErrConflict) {
			t.Fatal(err)
		}
		t.ok(m.Release(t.ctx))
	})
}
