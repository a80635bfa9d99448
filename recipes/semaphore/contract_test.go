package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// Nothing is sent for what can't be right.
func TestBadInput(t *testing.T) {
	run(t, func(e env) {
		s := e.Open()
		before := e.Requests().Total()
		for name, f := range map[string]func() error{
			"nil session": func() error { _, err := semaphore.New(nil, "/x", 1); return err },
			"bad path":    func() error { _, err := semaphore.New(s, "x", 1); return err },
			"size 0":      func() error { _, err := semaphore.New(s, "/x", 0); return err },
			"size -1":     func() error { _, err := semaphore.New(s, "/x", -1); return err },
			"size":        func() error { _, err := semaphore.New(s, "/x", semaphore.MaxSize+1); return err },
			"lock delay":  func() error { _, err := semaphore.New(s, "/x", 1, recipes.LockDelay(time.Second)); return err },
			"nil option":  func() error { _, err := semaphore.New(s, "/x", 1, nil); return err },
			"no permits":  func() error { _, err := e.sem(s, 3).AcquireN(e.T.Context(), 0); return err },
			"negative":    func() error { _, err := e.sem(s, 3).AcquireN(e.T.Context(), -2); return err },
			"too many":    func() error { _, err := e.sem(s, 3).AcquireN(e.T.Context(), 4); return err },
			"try many":    func() error { _, err := e.sem(s, 3).TryAcquireN(e.T.Context(), 4); return err },
			"resize 0":    func() error { return e.sem(s, 3).Resize(e.T.Context(), 0) },
			"resize huge": func() error { return e.sem(s, 3).Resize(e.T.Context(), semaphore.MaxSize+1) },
		} {
			if err := f(); !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := e.Requests().Total() - before; n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestContenders(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(3, recipes.Owner("us"))
		if c, err := s.Contenders(e.T.Context()); len(c) > 0 || err != nil {
			t.Errorf("%v, %v", c, err)
		}
		a, b := e.held(s, 1), e.held(e.fresh(3, recipes.Owner("them")), 2)
		e.Release(a)
		w := e.take(s, 2)
		e.contenders(2)
		time.Sleep(time.Second)
		c, err := s.Contenders(e.T.Context())
		if err != nil || len(c) != 2 {
			t.Fatalf("%v, %v", c, err)
		}
		if h := c[0]; h.Owner != "them" || h.Token != b.Token() || !h.Holding || h.Mine || h.Permits != 2 || len(h.Slots) != 2 || h.Slots[0] != 1 || h.Kind != "lease" {
			t.Errorf("%+v", h)
		}
		if h := c[1]; h.Owner != "us" || h.Holding || !h.Mine || h.Permits != 2 || h.Slots != nil || h.Since.IsZero() {
			t.Errorf("%+v", h)
		}
		// Several hold at a time.
		e.Release(b)
		g := w.Grant(time.Second)
		h := e.held(s, 1)
		e.take(e.fresh(3, recipes.FailOnLoss()), 1)
		e.contenders(3)
		if c, err := s.Contenders(e.T.Context()); err != nil || len(c) != 3 || !c[0].Holding || !c[1].Holding || c[2].Holding {
			t.Errorf("%+v, %v", c, err)
		}
		e.Release(g)
		e.Release(h)
		if s.Path() != locktest.Path {
			t.Error(s.Path())
		}
	})
}

func TestAcquireUnderItsOwnGrant(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(3)
		g := e.held(s, 1)
		ctx := g.Context(e.T.Context())
		e.StartContext(ctx, s.Acquire).Fails(time.Second, recipes.ErrDeadlock)
		e.StartContext(ctx, s.TryAcquire).Fails(time.Second, recipes.ErrDeadlock)
		e.Release(g)

		// A nested grant has the permits of the outer one, and takes none.
		s = e.fresh(3, recipes.Reentrant())
		g = e.held(s, 2)
		ctx = g.Context(e.T.Context())
		e.ResetCounts()
		nested := e.StartContext(ctx, func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, 2) }).Grant(time.Second)
		if n := e.Requests().Total(); n > 0 {
			t.Errorf("%d requests", n)
		}
		slotsAre(t, nested, 0, 1)
		e.StartContext(ctx, func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, 3) }).Fails(time.Second, recipes.ErrDeadlock)
		e.Release(g)
		e.try(e.fresh(3), 2).Fails(time.Second, recipes.ErrBusy)
		e.Release(nested)
		e.Release(e.try(e.fresh(3), 3).Grant(time.Second))
	})
}

func TestMaxHoldGivesThePermitsBack(t *testing.T) {
	run(t, func(e env) {
		told := make(chan recipes.Revocation, 1)
		s := e.fresh(2, recipes.MaxHold(time.Minute), recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
		g := e.held(s, 2)
		a := e.take(e.fresh(2), 2)
		h := a.Grant(time.Minute + time.Second)
		if r := locktest.Await(e.Env, told); !errors.Is(r.Cause, recipes.ErrHeldTooLong) || r.Token != g.Token() {
			t.Errorf("%+v", r)
		}
		e.Release(h)
	})
}

// Several objects, one grant: what is shared among goroutines is the semaphore.
func TestDoAndVerify(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(2)
		err := recipes.Do(e.T.Context(), s.Acquire, func(ctx context.Context, g *recipes.Grant) error {
			slotsAre(t, g, 0)
			if g.Remaining() <= 0 {
				t.Error("no trust")
			}
			return g.Verify(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		e.Empty()
	})
}

// The session is closed while it holds and while it waits.
func TestSessionIsClosed(t *testing.T) {
	run(t, func(e env) {
		s := e.Open()
		sem := e.sem(s, 2)
		g := e.held(sem, 2)
		w := e.take(sem, 1)
		e.contenders(2)
		began := time.Now()
		s.Close()
		w.Fails(time.Second, recipes.ErrSessionClosed)
		if !errors.Is(g.Err(), recipes.ErrSessionClosed) {
			t.Error(g.Err())
		}
		e.Empty()
		if d := time.Since(began); d > time.Second {
			t.Errorf("took %v", d)
		}
		e.take(sem, 1).Fails(time.Second, recipes.ErrSessionClosed)
	})
}

// case 75: who may not write the record learns so at once, and leaves nothing.
func TestPermissionIsRefused(t *testing.T) {
	run(t, func(e env) {
		owner := e.Open(func(c *session.Config) {
			c.Auth = []session.Auth{{Scheme: "digest", Credentials: "a:b"}}
			c.ACL = append(zk.DigestACL(zk.PermAll, "a", "b"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		})
		e.Release(e.held(e.sem(owner, 2), 1))
		other := e.fresh(2)
		e.take(other, 1).Fails(time.Second, recipes.ErrPermission)
		e.Empty()
		if err := other.Resize(e.T.Context(), 3); !errors.Is(err, recipes.ErrPermission) {
			t.Error(err)
		}
		e.Release(e.held(e.sem(owner, 2), 2))
	})
}

// case 58: what is no contender is ignored.
func TestForeignChildren(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(2)
		g := e.held(s, 1)
		for _, n := range []string{"config", "leases", "lease-", "lease-12", "x-lease-abc"} {
			e.Create(locktest.Path+"/"+n, []byte("x"))
		}
		h := e.held(e.fresh(2), 1)
		slotsAre(t, h, 1)
		e.Release(g)
		i := e.held(s, 1)
		slotsAre(t, i, 0)
		c, err := s.Contenders(e.T.Context())
		if err != nil || len(c) != 2 {
			t.Errorf("%v, %v", c, err)
		}
		e.Release(h)
		e.Release(i)
	})
}

func TestErrorsNameTheOperation(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(2)
		_, err := s.AcquireN(e.T.Context(), 3)
		var re *recipes.Error
		if !errors.As(err, &re) || re.Op != "acquire" || re.Path != locktest.Path || !strings.Contains(err.Error(), "3 permits: want 1 to 2") {
			t.Error(err)
		}
	})
}
