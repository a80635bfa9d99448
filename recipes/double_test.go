package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A double stands behind a grant in place of a server.
type double struct {
	mu        sync.Mutex
	remaining time.Duration
	verify    error
	keepsDone bool // GiveUp does not call done by itself
	failure   error
	givenUp   []error // the causes
	done      func(error)
}

func (d *double) Remaining() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.remaining
}

func (d *double) Verify(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.verify
}

func (d *double) GiveUp(cause error, done func(error)) {
	d.mu.Lock()
	d.givenUp = append(d.givenUp, cause)
	d.done = done
	keeps, failure := d.keepsDone, d.failure
	d.mu.Unlock()
	if !keeps {
		done(failure)
	}
}

func (d *double) setRemaining(left time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remaining = left
}

// causes returns what GiveUp was called with.
func (d *double) causes() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]error(nil), d.givenUp...)
}

const path = "/locks/x"

// grant makes a grant on a double.
func grant(t testing.TB, opts ...recipes.Option) (*recipes.Grant, *double, func(cause error, gone bool) bool) {
	t.Helper()
	return grantAt(t, path, 7, opts...)
}

func grantAt(t testing.TB, path string, token recipes.Token, opts ...recipes.Option) (*recipes.Grant, *double, func(cause error, gone bool) bool) {
	t.Helper()
	d := &double{remaining: time.Hour}
	g, revoke := recipes.NewGrant(recipes.Spec{
		Realm: "realm", Path: path, Mode: "lock", Token: token, Settings: settings(t, opts...), Hold: d,
	})
	return g, d, revoke
}

func settings(t testing.TB, opts ...recipes.Option) recipes.Settings {
	t.Helper()
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func isDone(g *recipes.Grant) bool {
	select {
	case <-g.Done():
		return true
	default:
		return false
	}
}

// A lockable is a lock on doubles.
type lockable struct {
	key   string
	token recipes.Token
	err   error
	order *[]string // of the keys that were locked
	opts  []recipes.Option

	t      testing.TB
	g      *recipes.Grant
	d      *double
	revoke func(error, bool) bool
}

func (l *lockable) Key() string { return l.key }

func (l *lockable) Lock(ctx context.Context) (*recipes.Grant, error) {
	if l.order != nil {
		*l.order = append(*l.order, l.key)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.err != nil {
		return nil, l.err
	}
	l.g, l.d, l.revoke = grantAt(l.t, l.key, l.token, l.opts...)
	return l.g, nil
}
