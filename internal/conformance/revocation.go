package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var revocationChecks = []check{
	{
		name:    "CutOffWhileHolding",
		promise: "a holder that is cut off without notice is revoked by its own clock before another is granted: Done, contexts with their cause, OnRevoke exactly once, ErrSessionLost; Release and Verify say so each time",
		needs:   []Capability{CuttingOff},
		way: func(e *env, w int) {
			e.revoked(w, true, func(c Client, s *scene) error {
				c.CutOff()
				return recipes.ErrSessionLost
			})
		},
	},
	{
		name:    "LostWhileHolding",
		promise: "a holder whose session the service ends hears of it, with its reason and exactly once, and the next in line is granted",
		needs:   []Capability{Losing},
		way: func(e *env, w int) {
			e.revoked(w, false, func(c Client, s *scene) error { return c.Lose() })
		},
	},
	{
		name:    "RemovedWhileHolding",
		promise: "a holder whose lock an operator removes hears of it, with ErrNodeDeleted and exactly once, and the next in line is granted",
		needs:   []Capability{Removing},
		way: func(e *env, w int) {
			e.revoked(w, false, func(c Client, s *scene) error {
				e.Remove(lockX, s.line-1)
				return recipes.ErrNodeDeleted
			})
		},
	},
	{
		name:    "EverythingIsRemoved",
		promise: "when an operator removes everything, holders are revoked, and those who wait are served all the same",
		needs:   []Capability{Removing, Requeueing},
		way:     everythingIsRemoved,
	},
}

// revocations collects what OnRevoke is called with.
type revocations struct {
	mu   sync.Mutex
	list []recipes.Revocation
	some chan struct{} // closed with the first
}

func newRevocations() *revocations { return &revocations{some: make(chan struct{})} }

func (r *revocations) option() recipes.Option {
	return recipes.OnRevoke(func(rev recipes.Revocation) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.list = append(r.list, rev); len(r.list) == 1 {
			close(r.some)
		}
	})
}

func (r *revocations) all() []recipes.Revocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]recipes.Revocation(nil), r.list...)
}

// revoked has a holder lose its lock by a fault, and looks at what everybody
// hears of it. warned says that the holder knows before the service does.
func (e *env) revoked(w int, warned bool, fault func(Client, *scene) error) {
	c, revs := e.Client(), newRevocations()
	l := e.on(c, revs.option(), recipes.Owner("holder"))
	s := e.hold(l, w)
	type key struct{}
	ctx := s.g.Context(context.WithValue(e.t.Context(), key{}, 1))
	next := s.wait(e.fresh(), 1)
	e.Pass(time.Minute)
	if s.g.Err() != nil || ctx.Err() != nil || len(revs.all()) > 0 {
		e.t.Fatalf("revoked before anything happened: %v", s.g.Err())
	}
	if !warned {
		e.witness.pardon(s.g)
	}
	reason := fault(c, s)
	g := next.grant() // and the witness has looked at Done
	e.await(s.g.Done(), "Done")
	e.await(ctx.Done(), "the grant's context")
	e.await(revs.some, "OnRevoke")
	if err := context.Cause(ctx); err != s.g.Err() || ctx.Value(key{}) != 1 {
		e.t.Errorf("the context's cause is %v", err)
	}
	e.ended(s.g, reason)
	if err := g.Verify(e.context()); err != nil {
		e.t.Errorf("the next grant after the late release of the one before: %v", err)
	}
	e.release(g)
	s.part()
	e.Heal()
	e.release(e.get(l, w)) // the lock object goes on
	e.Pass(time.Minute)
	e.empty()
	list := revs.all()
	if len(list) != 1 {
		e.t.Fatalf("OnRevoke was called %d times", len(list))
	}
	if r := list[0]; r.Token != s.g.Token() || r.Path != s.g.Path() || r.Owner != "holder" || r.Cause != s.g.Err() {
		e.t.Errorf("OnRevoke was told %+v", r)
	}
}

// ended checks what a revoked grant says of itself, each time.
func (e *env) ended(g *recipes.Grant, reason error) {
	e.t.Helper()
	for range 3 {
		for what, err := range map[string]error{
			"Err":     g.Err(),
			"Release": g.Release(e.context()),
			"Verify":  g.Verify(e.context()),
		} {
			if !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, reason) || errors.Is(err, recipes.ErrReleased) {
				e.t.Errorf("%s is %v, want ErrRevoked with %v", what, err, reason)
			}
		}
		if r := g.Remaining(); r != 0 {
			e.t.Errorf("%v remain after the end", r)
		}
	}
	if ctx := g.Context(e.t.Context()); ctx.Err() == nil || context.Cause(ctx) != g.Err() {
		e.t.Errorf("a context made after the end: %v", context.Cause(ctx))
	}
}

func everythingIsRemoved(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	waiting := []*attempt{s.wait(l, 1), s.wait(e.fresh(), 2), s.wait(e.fresh(), 3)}
	e.witness.pardon(s.g)
	for _, g := range s.company {
		e.witness.pardon(g)
	}
	e.RemoveAll(lockX)
	for _, g := range append(s.company, s.g) {
		e.await(g.Done(), "Done")
		e.ended(g, recipes.ErrNodeDeleted)
	}
	var wg sync.WaitGroup
	for _, a := range waiting {
		wg.Go(func() {
			<-a.done
			if a.err != nil {
				e.t.Errorf("a waiter: %v", a.err)
				return
			}
			e.Pass(time.Second)
			e.release(a.g)
		})
	}
	e.bounded("those who wait", wg.Wait)
}
