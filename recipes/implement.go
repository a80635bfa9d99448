package recipes

import (
	"context"
	"time"
)

// A Hold is what stands behind a grant on the server. It is for those who write
// a recipe; users of one never see it.
//
// Its methods must be safe for concurrent use and must not call the grant's
// methods while they run.
type Hold interface {
	// Remaining returns how long the hold may still be believed without news
	// from the server. Zero or less: not any longer; the grant is then revoked
	// with ErrSessionLost, unless Remaining has revoked it with a better reason.
	Remaining() time.Duration
	// Verify asks the service, with the strength that it has, whether the hold
	// is still there.
	Verify(ctx context.Context) error
	// GiveUp starts to end the hold on the server and returns at once. The
	// backend repeats it until it has proof, and then calls done, once, from any
	// goroutine; an error means that the hold may still be there. cause is nil
	// for a release, or else the reason why the grant was revoked while the
	// server still has the hold.
	GiveUp(cause error, done func(error))
}

// Spec describes a new grant.
type Spec struct {
	// Realm and Path together name the lock in this process: grants with the
	// same of both are grants of one lock, for re-entrancy. Realm names the
	// service (an ensemble and its chroot, say).
	Realm, Path string
	Mode        string // "lock", "read", "write"
	Token       Token
	Settings    Settings
	Hold        Hold
}

// NewGrant makes a live grant. The returned revoke ends it and all its nested
// grants with ErrRevoked and the cause, if it is still live, and reports whether
// it did: when it returns, Done is closed, the contexts are cancelled and the
// callbacks have been started. Afterwards GiveUp is called, with the cause,
// unless gone says that the server has nothing left to give up.
func NewGrant(spec Spec) (g *Grant, revoke func(cause error, gone bool) bool) {
	t := newTenure(spec)
	g = t.join(spec.Settings)
	return g, t.revoke
}

// Nested looks in ctx for a live grant of the lock that realm and path name, in
// one of the modes, or in any if none is given. It returns nil, nil where there is
// none; a nested grant where set has [Reentrant]; and ErrDeadlock otherwise.
func Nested(ctx context.Context, set Settings, realm, path string, modes ...string) (*Grant, error) {
	t := heldIn(ctx, realm, path, modes)
	if t == nil {
		return nil, nil
	}
	if !set.Reentrant {
		return nil, ErrDeadlock
	}
	if g := t.join(set); g != nil {
		return g, nil
	}
	return nil, nil // it ended just now
}

// HeldMode returns the mode of the live grant of that lock in ctx, or "". Where
// there are several, as of a reader that was granted under a writer, it is that of
// the innermost; see [HeldHold].
func HeldMode(ctx context.Context, realm, path string) string {
	if t := heldIn(ctx, realm, path, nil); t != nil {
		return t.mode
	}
	return ""
}

// HeldHold returns what stands behind the live grant of that lock and mode in ctx,
// with the grant's token; nil where there is none. It is how a recipe grants one
// mode under another, as a read lock under the write lock.
func HeldHold(ctx context.Context, realm, path, mode string) (Hold, Token) {
	if t := heldIn(ctx, realm, path, []string{mode}); t != nil {
		return t.hold, t.token
	}
	return nil, 0
}

// HoldOf returns what stands behind g, for packages that extend the grants of
// their own backend; nil for a grant of several locks ([All]).
func HoldOf(g *Grant) Hold {
	if g.tenure == nil {
		return nil
	}
	return g.tenure.hold
}
