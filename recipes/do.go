package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Do acquires, runs fn, and releases, also if fn panics. Method values make it
// serve every lock:
//
//	err := recipes.Do(ctx, m.Lock, func(ctx context.Context, g *recipes.Grant) error {
//		return store.Put(ctx, row, g.Token())
//	})
//
// The context that fn gets ends with the grant. If acquiring fails, fn does not
// run and the error is acquire's. Otherwise the result is fn's error; if the
// grant was revoked before fn returned, the revocation is joined into it, also
// where fn returned nil, so that a loss is never silent. Do does not wait for
// fn's goroutines, and can't stop fn. Where ctx has ended by the time fn returns,
// the release goes on in the background and is not waited for.
func Do(ctx context.Context, acquire func(context.Context) (*Grant, error), fn func(context.Context, *Grant) error) (err error) {
	if acquire == nil || fn == nil {
		return fmt.Errorf("lockkeeper: Do: %w: want two functions", ErrInvalid)
	}
	g, err := acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		rerr := g.Release(ctx)
		if rerr == nil || errors.Is(err, ErrRevoked) {
			return
		}
		if ctx.Err() != nil && errors.Is(g.Err(), ErrReleased) && errors.Is(rerr, context.Cause(ctx)) {
			return // unconfirmed only because ctx is over
		}
		err = errors.Join(err, rerr)
	}()
	return fn(g.Context(ctx), g)
}

// A Lockable is a lock that [All] can take.
type Lockable interface {
	Lock(ctx context.Context) (*Grant, error)
	// Key names the lock in the one order in which all locks are taken. Two
	// objects for the same lock have the same key.
	Key() string
}

// All takes several locks or none, and returns them as one grant. It takes them
// one after the other in the order of their keys, whatever order they are given
// in, so two callers of All never wait for each other in a circle; mixing All
// with locks taken one by one in another order can. Keys sort by path; where locks
// of two services have the same path, also by what the program knows the services
// by, so there all programs should name them alike. ctx is one deadline for all
// of the waiting. If one can't be had, those already taken are released and the
// error is that one's. A lock given twice is refused with ErrDeadlock.
//
// The grant is revoked when the first of its parts is. The other parts are kept
// until Release is called, since the caller may still be winding down what they
// protect.
func All(ctx context.Context, locks ...Lockable) (*Grant, error) {
	if len(locks) == 0 {
		return nil, fmt.Errorf("lockkeeper: All: %w: want at least one lock", ErrInvalid)
	}
	for i, l := range locks {
		if l == nil {
			return nil, fmt.Errorf("lockkeeper: All: %w: lock %d is nil", ErrInvalid, i)
		}
	}
	order := slices.Clone(locks)
	slices.SortStableFunc(order, func(a, b Lockable) int { return cmp.Compare(a.Key(), b.Key()) })
	for i := 1; i < len(order); i++ {
		if order[i].Key() == order[i-1].Key() {
			return nil, fmt.Errorf("lockkeeper: All: %w: the same lock is given twice: %q", ErrDeadlock, order[i].Key())
		}
	}
	var parts []*Grant
	defer func() { // also if a Lock panics
		if len(parts) == len(order) {
			return
		}
		for _, p := range slices.Backward(parts) {
			p.Release(canceled(ctx)) // carried out in the background
		}
	}()
	for _, l := range order {
		g, err := l.Lock(ctx)
		if err != nil {
			return nil, err
		}
		parts = append(parts, g)
	}
	return together(parts), nil
}
