package recipes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// three locks, given in no order.
func three(t *testing.T, order *[]string, opts ...recipes.Option) (b, c, a *lockable) {
	return &lockable{t: t, key: "b", token: 2, order: order, opts: opts},
		&lockable{t: t, key: "c", token: 3, order: order, opts: opts},
		&lockable{t: t, key: "a", token: 1, order: order, opts: opts}
}

func TestAllLocksInOneOrder(t *testing.T) {
	var order []string
	b, c, a := three(t, &order)
	locks := []recipes.Lockable{b, c, a}
	g, err := recipes.All(t.Context(), locks...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []string{"a", "b", "c"}) || locks[0] != b {
		t.Errorf("locked in the order %q, the caller's slice is %v", order, locks)
	}
	var tokens []recipes.Token
	for _, p := range g.Parts() {
		tokens = append(tokens, p.Token())
	}
	if !slices.Equal(tokens, []recipes.Token{1, 2, 3}) || g.Token() != 3 || g.Path() != "a,b,c" || recipes.HoldOf(g) != nil {
		t.Errorf("%v %v %q", tokens, g.Token(), g.Path())
	}
	b.d.setRemaining(time.Minute)
	if g.Remaining() != time.Minute || g.Err() != nil || g.Verify(t.Context()) != nil {
		t.Errorf("%v %v", g.Remaining(), g.Err())
	}
	ctx := g.Context(t.Context())
	for _, key := range []string{"a", "b", "c"} {
		if recipes.HeldMode(ctx, "realm", key) != "lock" {
			t.Errorf("%s is not known to be held", key)
		}
	}
	for range 2 {
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, l := range []*lockable{a, b, c} {
		if causes := l.d.causes(); len(causes) != 1 || causes[0] != nil || !isDone(l.g) {
			t.Errorf("%s: %v", l.key, causes)
		}
	}
	if !errors.Is(g.Err(), recipes.ErrReleased) || !errors.Is(context.Cause(ctx), recipes.ErrReleased) {
		t.Error(g.Err(), context.Cause(ctx))
	}
}

func TestAllOrNone(t *testing.T) {
	b, c, a := three(t, nil)
	c.err = recipes.ErrPermission
	g, err := recipes.All(t.Context(), b, c, a)
	if g != nil || !errors.Is(err, recipes.ErrPermission) {
		t.Errorf("%v, %v", g, err)
	}
	for _, l := range []*lockable{a, b} {
		if !errors.Is(l.g.Err(), recipes.ErrReleased) || len(l.d.causes()) != 1 {
			t.Errorf("%s is still held", l.key)
		}
	}
}

// A lock that panics leaves none of the others held.
func TestAllWhenALockPanics(t *testing.T) {
	b, _, a := three(t, nil)
	func() {
		defer func() {
			if recover() != "ouch" {
				t.Error("the panic was swallowed")
			}
		}()
		recipes.All(t.Context(), b, a, panics{})
	}()
	for _, l := range []*lockable{a, b} {
		if !isDone(l.g) {
			t.Errorf("%s is still held", l.key)
		}
	}
}

type panics struct{}

func (panics) Key() string                                  { return "z" }
func (panics) Lock(context.Context) (*recipes.Grant, error) { panic("ouch") }

func TestAllRefuses(t *testing.T) {
	b, _, _ := three(t, nil)
	again := &lockable{t: t, key: "b"}
	if g, err := recipes.All(t.Context()); g != nil || !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("nothing: %v, %v", g, err)
	}
	if g, err := recipes.All(t.Context(), b, nil); g != nil || !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("nil: %v, %v", g, err)
	}
	if g, err := recipes.All(t.Context(), b, again); g != nil || !errors.Is(err, recipes.ErrDeadlock) || b.g != nil {
		t.Errorf("the same lock twice: %v, %v, locked %v", g, err, b.g)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g, err := recipes.All(ctx, b); g != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("ctx over: %v, %v", g, err)
	}
}

// The loss of one part ends the whole; the others are kept until Release.
func TestAllLosesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := make(chan recipes.Revocation, 5)
		b, c, a := three(t, nil, recipes.OnRevoke(func(r recipes.Revocation) { called <- r }))
		g, err := recipes.All(t.Context(), b, c, a)
		if err != nil {
			t.Fatal(err)
		}
		ctx := g.Context(t.Context())
		b.revoke(recipes.ErrNodeDeleted, true)
		if !isDone(g) || !errors.Is(g.Err(), recipes.ErrNodeDeleted) || context.Cause(ctx) != g.Err() || g.Remaining() != 0 {
			t.Errorf("%v, %v", g.Err(), context.Cause(ctx))
		}
		if isDone(a.g) || isDone(c.g) {
			t.Error("the others were given up while the caller winds down")
		}
		for range 2 {
			if err := g.Release(t.Context()); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
				t.Error(err)
			}
		}
		if !errors.Is(a.g.Err(), recipes.ErrReleased) || !errors.Is(c.g.Err(), recipes.ErrReleased) {
			t.Errorf("%v %v", a.g.Err(), c.g.Err())
		}
		synctest.Wait()
		if len(called) != 1 {
			t.Errorf("%d callbacks", len(called))
		}
	})
}

// Release of several: all at once, confirmed when the last is, refused if one is.
func TestAllIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, a := three(t, nil)
		g, _ := recipes.All(t.Context(), b, c, a)
		for _, l := range []*lockable{a, b, c} {
			l.d.keepsDone = true
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error)
		go func() { first <- g.Release(ctx) }()
		synctest.Wait()
		for _, l := range []*lockable{a, b, c} {
			if len(l.d.causes()) != 1 {
				t.Errorf("%s waits for another's confirmation", l.key)
			}
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		c.d.done(nil)
		a.d.done(nil)
		second := make(chan error)
		go func() { second <- g.Release(t.Context()) }()
		synctest.Wait()
		b.d.done(recipes.ErrPermission)
		if err := <-second; !errors.Is(err, recipes.ErrPermission) {
			t.Error(err)
		}
	})
}

// A lock of one's own may be made of several, with All.
func TestAllOfSeveral(t *testing.T) {
	b, c, a := three(t, nil)
	pair, err := recipes.All(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	g, err := recipes.All(t.Context(), locked{"pair", pair}, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx := g.Context(t.Context())
	for _, key := range []string{"a", "b", "c"} {
		if recipes.HeldMode(ctx, "realm", key) != "lock" {
			t.Errorf("%s is not known to be held", key)
		}
	}
	if err := g.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for _, l := range []*lockable{a, b, c} {
		if !errors.Is(l.g.Err(), recipes.ErrReleased) {
			t.Errorf("%s: %v", l.key, l.g.Err())
		}
	}
}

func TestAllOfOne(t *testing.T) {
	b, _, _ := three(t, nil)
	g, err := recipes.All(t.Context(), b)
	if err != nil || g.Token() != 2 || len(g.Parts()) != 1 {
		t.Errorf("%v, %v", g, err)
	}
	g.Release(t.Context())
	single, _, _ := grant(t)
	if p := single.Parts(); len(p) != 1 || p[0] != single || recipes.HoldOf(single) == nil {
		t.Error(p)
	}
	single.Release(t.Context())
}
