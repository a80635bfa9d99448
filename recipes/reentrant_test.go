package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// nested asks for a grant under ctx, as a recipe does.
func nested(t *testing.T, ctx context.Context, opts ...recipes.Option) *recipes.Grant {
	t.Helper()
	g, err := recipes.Nested(ctx, settings(t, opts...), "realm", path)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNestedGrants(t *testing.T) {
	outer, d, _ := grant(t)
	in := nested(t, outer.Context(t.Context()), recipes.Reentrant())
	inmost := nested(t, in.Context(t.Context()), recipes.Reentrant())
	if in == nil || inmost == nil || in.Token() != outer.Token() || inmost.Token() != outer.Token() {
		t.Fatalf("%v %v", in, inmost)
	}
	// Released in any order: the lock goes with the last.
	for _, g := range []*recipes.Grant{outer, inmost} {
		for range 2 {
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(d.causes()) > 0 || in.Err() != nil || !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Errorf("given up %v; %v, %v", d.causes(), in.Err(), g.Err())
		}
	}
	in.Release(t.Context())
	if c := d.causes(); len(c) != 1 || c[0] != nil {
		t.Errorf("given up with %v", c)
	}
	if g := nested(t, in.Context(t.Context()), recipes.Reentrant()); g != nil {
		t.Error("nested in a grant that has ended")
	}
}

func TestRevocationEndsAllNestedGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := map[string]int{}
		called := func(who string) recipes.Option {
			return recipes.OnRevoke(func(recipes.Revocation) {
				mu.Lock()
				defer mu.Unlock()
				calls[who]++
			})
		}
		outer, _, revoke := grant(t, called("outer"))
		in := nested(t, outer.Context(t.Context()), recipes.Reentrant(), called("in"))
		released := nested(t, outer.Context(t.Context()), recipes.Reentrant(), called("released"))
		released.Release(t.Context())
		ctx := in.Context(t.Context())
		revoke(recipes.ErrSessionLost, true)
		if !errors.Is(outer.Err(), recipes.ErrSessionLost) || !errors.Is(in.Err(), recipes.ErrSessionLost) ||
			!errors.Is(released.Err(), recipes.ErrReleased) || context.Cause(ctx) != in.Err() {
			t.Errorf("%v %v %v %v", outer.Err(), in.Err(), released.Err(), context.Cause(ctx))
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(calls) != 2 || calls["outer"] != 1 || calls["in"] != 1 {
			t.Errorf("%v", calls)
		}
	})
}

func TestDeadlockIsRefused(t *testing.T) {
	g, d, _ := grant(t, recipes.Reentrant()) // the inner call's options count
	ctx := g.Context(t.Context())
	for name, c := range map[string]struct {
		ctx         context.Context
		realm, path string
		want        error
	}{
		"same lock":              {ctx, "realm", path, recipes.ErrDeadlock},
		"further down":           {context.WithValue(ctx, anyKey{}, 1), "realm", path, recipes.ErrDeadlock},
		"another path":           {ctx, "realm", "/locks/y", nil},
		"another realm":          {ctx, "elsewhere", path, nil},
		"realm and path swapped": {ctx, path, "realm", nil},
		"another context":        {t.Context(), "realm", path, nil},
	} {
		got, err := recipes.Nested(c.ctx, settings(t), c.realm, c.path)
		if got != nil || err != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		mode := ""
		if c.want != nil {
			mode = "lock"
		}
		if got := recipes.HeldMode(c.ctx, c.realm, c.path); got != mode {
			t.Errorf("%s: mode %q", name, got)
		}
	}
	d.setRemaining(0) // lost, though nobody has said so yet
	if got, err := recipes.Nested(ctx, settings(t), "realm", path); got != nil || err != nil {
		t.Errorf("after the loss: %v, %v", got, err)
	}
}

// MaxHold of a nested grant counts from its own beginning, and ends all.
func TestMaxHoldOfANestedGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, _, _ := grant(t)
		in := nested(t, outer.Context(t.Context()), recipes.Reentrant(), recipes.MaxHold(time.Second))
		start := time.Now()
		<-outer.Done()
		if time.Since(start) != time.Second || !errors.Is(in.Err(), recipes.ErrHeldTooLong) {
			t.Errorf("after %v: %v", time.Since(start), in.Err())
		}
	})
}

// One that was released in time ends nothing.
func TestMaxHoldOfANestedGrantThatWasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, _, _ := grant(t)
		nested(t, outer.Context(t.Context()), recipes.Reentrant(), recipes.MaxHold(time.Second)).Release(t.Context())
		time.Sleep(time.Minute)
		if outer.Err() != nil {
			t.Error(outer.Err())
		}
		outer.Release(t.Context())
	})
}

// Nesting while the last grant is being released: either it is nested, and live,
// or the lock is to be taken anew.
func TestNestingRacesRelease(t *testing.T) {
	for range 500 {
		g, d, _ := grant(t)
		ctx := g.Context(t.Context())
		set := settings(t, recipes.Reentrant())
		var wg sync.WaitGroup
		var in *recipes.Grant
		wg.Go(func() { g.Release(t.Context()) })
		wg.Go(func() { in, _ = recipes.Nested(ctx, set, "realm", path) })
		wg.Wait()
		if in == nil != (len(d.causes()) == 1) || in != nil && in.Err() != nil {
			t.Fatalf("nested %v, given up %v", in != nil, d.causes())
		}
		if in != nil {
			in.Release(t.Context())
		}
	}
}

// anyKey is a key of somebody else's.
type anyKey struct{}
