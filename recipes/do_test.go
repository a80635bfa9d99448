package recipes_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestDo(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		fn   error
		lose bool
		want []error
	}{
		"fine":           {nil, false, nil},
		"fn fails":       {boom, false, []error{boom}},
		"lost":           {nil, true, []error{recipes.ErrRevoked, recipes.ErrSessionLost}},
		"fails and lost": {boom, true, []error{boom, recipes.ErrRevoked}},
	} {
		g, d, revoke := grant(t)
		var seen context.Context
		err := recipes.Do(t.Context(), acquires(g, nil), func(ctx context.Context, got *recipes.Grant) error {
			seen = ctx
			if got != g || ctx.Err() != nil {
				t.Errorf("%s: %v, %v", name, got, ctx.Err())
			}
			if c.lose {
				revoke(recipes.ErrSessionLost, true)
			}
			return c.fn
		})
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		if c.want == nil && err != nil || !isDone(g) || seen.Err() == nil || !c.lose && len(d.causes()) != 1 {
			t.Errorf("%s: %v; done %v, given up %v", name, err, isDone(g), d.causes())
		}
	}
}

func acquires(g *recipes.Grant, err error) func(context.Context) (*recipes.Grant, error) {
	return func(context.Context) (*recipes.Grant, error) { return g, err }
}

// fn passes on what its context said: the loss is not said twice.
func TestDoReturnsTheCauseOnce(t *testing.T) {
	g, _, revoke := grant(t)
	err := recipes.Do(t.Context(), acquires(g, nil), func(ctx context.Context, g *recipes.Grant) error {
		revoke(recipes.ErrSessionLost, true)
		return context.Cause(ctx)
	})
	if err != g.Err() {
		t.Error(err)
	}
}

func TestDoWhenAcquiringFails(t *testing.T) {
	err := recipes.Do(t.Context(), acquires(nil, recipes.ErrBusy), func(context.Context, *recipes.Grant) error {
		t.Error("fn ran")
		return nil
	})
	if err != recipes.ErrBusy {
		t.Error(err)
	}
	for _, err := range []error{
		recipes.Do(t.Context(), nil, func(context.Context, *recipes.Grant) error { return nil }),
		recipes.Do(t.Context(), acquires(nil, nil), nil),
	} {
		if !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
	}
}

// Released also if fn panics or ends its goroutine.
func TestDoWhenFnDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("ouch") }, "Goexit": runtime.Goexit} {
		g, d, _ := grant(t)
		done := make(chan any)
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					done <- p
				}
			}()
			recipes.Do(t.Context(), acquires(g, nil), func(context.Context, *recipes.Grant) error { leave(); return nil })
		}()
		if p := <-done; (name == "panic") != (p == "ouch") {
			t.Errorf("%s: recovered %v", name, p)
		}
		if !isDone(g) || len(d.causes()) != 1 {
			t.Errorf("%s: not released", name)
		}
	}
}

func TestDoWhenTheReleaseFails(t *testing.T) {
	boom := errors.New("boom")
	g, d, _ := grant(t)
	d.failure = recipes.ErrPermission
	err := recipes.Do(t.Context(), acquires(g, nil), func(context.Context, *recipes.Grant) error { return boom })
	if !errors.Is(err, boom) || !errors.Is(err, recipes.ErrPermission) {
		t.Error(err)
	}
}

// ctx ends while fn runs: its result counts, the release is not waited for.
func TestDoWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, result := range []error{nil, errors.New("boom")} {
			g, d, _ := grant(t)
			d.keepsDone = true
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			err := recipes.Do(ctx, acquires(g, nil), func(ctx context.Context, g *recipes.Grant) error {
				<-ctx.Done()
				return result
			})
			if err != result || time.Since(start) != time.Second || len(d.causes()) != 1 {
				t.Errorf("%v after %v, given up %v", err, time.Since(start), d.causes())
			}
			cancel()
			d.done(nil)
		}
	})
}

// fn may release by itself.
func TestDoWhenFnReleases(t *testing.T) {
	g, d, _ := grant(t)
	err := recipes.Do(t.Context(), acquires(g, nil), func(ctx context.Context, g *recipes.Grant) error { return g.Release(ctx) })
	if err != nil || len(d.causes()) != 1 {
		t.Errorf("%v, %v", err, d.causes())
	}
}
