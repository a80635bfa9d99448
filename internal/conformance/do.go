package conformance

import (
	"context"
	"errors"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var doChecks = []check{
	{
		name:    "Do",
		promise: "Do runs a function while the lock is held, and releases it whatever comes of that: a result, an error, a panic; where acquiring fails, it doesn't run it",
		way:     do,
	},
	{
		name:    "DoLosesTheLock",
		promise: "a loss during Do ends the function's context and is joined into the result, so that it is never silent",
		needs:   []Capability{Losing},
		way:     doLosesTheLock,
	},
}

func do(e *env, w int) {
	c := e.Client()
	l := e.on(c)
	acquire := l.Enter[w].Acquire
	during := func(ctx context.Context, g *recipes.Grant) {
		e.queued(1)
		if g.Err() != nil || ctx.Err() != nil {
			e.t.Errorf("while it runs: %v, %v", g.Err(), ctx.Err())
		}
	}
	var inner context.Context
	err := recipes.Do(e.context(), acquire, func(ctx context.Context, g *recipes.Grant) error {
		during(ctx, g)
		inner = ctx
		return nil
	})
	if err != nil || !errors.Is(context.Cause(inner), recipes.ErrReleased) {
		e.t.Errorf("%v; the function's context: %v", err, context.Cause(inner))
	}
	e.empty()
	err = recipes.Do(e.context(), acquire, func(ctx context.Context, g *recipes.Grant) error {
		during(ctx, g)
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		e.t.Errorf("the function's error: %v", err)
	}
	e.empty()
	func() {
		defer func() {
			if p := recover(); p != errEnough {
				e.t.Errorf("recovered %v", p)
			}
		}()
		recipes.Do(e.context(), acquire, func(ctx context.Context, g *recipes.Grant) error {
			during(ctx, g)
			panic(errEnough)
		})
	}()
	e.empty()
	if !e.s.has(Try) {
		return
	}
	s := e.hold(e.fresh(), w)
	err = recipes.Do(e.context(), l.Enter[s.rival].Try, func(context.Context, *recipes.Grant) error {
		e.t.Error("ran although the lock was busy")
		return nil
	})
	if !errors.Is(err, recipes.ErrBusy) {
		e.t.Errorf("busy: %v", err)
	}
	s.release()
}

func doLosesTheLock(e *env, w int) {
	c := e.Client()
	err := recipes.Do(e.t.Context(), e.on(c).Enter[w].Acquire, func(ctx context.Context, g *recipes.Grant) error {
		reason := c.Lose()
		e.await(ctx.Done(), "the end of the function's context")
		if cause := context.Cause(ctx); !errors.Is(cause, recipes.ErrRevoked) || !errors.Is(cause, reason) {
			e.t.Errorf("its cause is %v", cause)
		}
		return nil
	})
	if !errors.Is(err, recipes.ErrRevoked) {
		e.t.Errorf("Do returned %v", err)
	}
	e.release(e.get(e.fresh(), w))
}
