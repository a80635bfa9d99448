package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Grant is one successful acquisition. It ends once, by Release or by
// revocation, and never comes back to life. All methods are safe for concurrent
// use.
type Grant struct {
	path   string
	token  Token
	set    Settings
	tenure *tenure  // what it shares with the grants nested in it; nil if it has parts
	parts  []*Grant // of a grant made by All
	ending ending

	maxHold   *time.Timer
	confirmed chan struct{} // closed when the release has been carried out
	failure   error         // why it could not be; read after confirmed
}

// A Revocation tells an [OnRevoke] callback which grant was lost.
type Revocation struct {
	Path  string
	Token Token
	Owner string
	// Cause is the grant's Err: it matches ErrRevoked and the reason, such as
	// ErrSessionLost, ErrNodeDeleted or ErrHeldTooLong.
	Cause error
}

// Path returns the lock that was granted; for a grant of several locks, their
// paths with commas between.
func (g *Grant) Path() string { return g.path }

// Token returns the fencing token. A nested grant has the token of the outer
// one. A grant of several locks returns that of the lock taken last; each lock's
// own is in [Grant.Parts].
func (g *Grant) Token() Token { return g.token }

// Parts returns the grants that [All] put together, in the order in which they
// were taken; for any other grant, the grant itself.
func (g *Grant) Parts() []*Grant {
	if g.parts == nil {
		return []*Grant{g}
	}
	return append([]*Grant(nil), g.parts...)
}

// Slots returns which slots of the lock the grant has, in ascending order: 0 to
// N-1 of a semaphore with N permits. No two live grants of a lock have the same
// slot, so that it can name a worker. A nested grant has those of the outer one.
// It is nil for locks without slots, and for a grant of several locks.
func (g *Grant) Slots() []int {
	if h, ok := HoldOf(g).(interface{ Slots() []int }); ok {
		return slices.Clone(h.Slots())
	}
	return nil
}

// Done is closed when the grant ends. A revocation closes it not later than the
// end of the trust window, which is before the server can give the lock to
// another, as long as this process is being scheduled.
func (g *Grant) Done() <-chan struct{} { return g.ending.done }

// Err returns nil while the lock is held. Afterwards it matches ErrReleased, or
// ErrRevoked together with the reason. It looks at the clock itself, so it is
// right also in a process that was stopped and has just gone on.
func (g *Grant) Err() error {
	g.check()
	return g.ending.result()
}

// Remaining returns how much of the trust window is left: for how long the grant
// lasts if nothing more is heard from the server. It is zero once the grant has
// ended.
func (g *Grant) Remaining() time.Duration {
	if g.Err() != nil {
		return 0
	}
	if g.tenure != nil {
		return max(0, g.tenure.hold.Remaining())
	}
	least := g.parts[0].Remaining()
	for _, p := range g.parts[1:] {
		least = min(least, p.Remaining())
	}
	return least
}

// Context returns a copy of parent that ends with the grant; context.Cause then
// returns what Err does. A Lock of the same path under it is recognised: see
// [Reentrant] and ErrDeadlock. It may be called any number of times, and costs
// no goroutine while it lives.
func (g *Grant) Context(parent context.Context) context.Context {
	g.check()
	ctx, cancel := context.WithCancelCause(g.mark(parent))
	forget := g.ending.onEnd(func(err error) { cancel(err) })
	context.AfterFunc(ctx, forget)
	return ctx
}

// mark puts into ctx what is held.
func (g *Grant) mark(ctx context.Context) context.Context {
	if g.tenure != nil {
		return g.tenure.mark(ctx)
	}
	for _, p := range g.parts {
		ctx = p.mark(ctx)
	}
	return ctx
}

// Verify asks the service whether the lock is still held, with one round trip:
// the quorum of a ZooKeeper ensemble, the servers of a Redis lock. A lock found
// lost is revoked before Verify returns. It returns nil if held, Err's value if
// the grant has ended, and another error if there was no answer before ctx
// ended: then the grant lives on. The answer is true of the moment when it was
// given; what is written afterwards is protected by the token.
func (g *Grant) Verify(ctx context.Context) error {
	if err := g.Err(); err != nil {
		return err
	}
	if g.tenure == nil {
		for _, p := range g.parts {
			if err := p.Verify(ctx); err != nil {
				return err
			}
		}
		return g.Err()
	}
	err := g.tenure.hold.Verify(ctx)
	if ended := g.Err(); ended != nil {
		return ended
	}
	if err != nil {
		return &Error{Op: "verify", Path: g.path, Reason: err}
	}
	return nil
}

// Release gives the lock up. The grant has ended when the call begins to wait:
// what follows is carried out even if ctx is over, in the background, until the
// server has confirmed it or the session has ended; ctx bounds only the wait for
// that. It returns nil once confirmed, and is idempotent.
//
// If the grant had been revoked, Release returns Err's value, each time: the
// work was not protected to its end. If the server finds only then that the lock had
// been removed, the error matches ErrRevoked likewise. If ctx ended first, it returns
// an error that matches context.Cause(ctx): not confirmed, not undone. If the server
// refused (ErrPermission), the lock stays held until the session ends.
func (g *Grant) Release(ctx context.Context) error {
	g.check()
	if g.tenure != nil {
		g.tenure.leave(g)
	} else {
		g.releaseParts(ctx)
	}
	if err := g.ending.result(); !errors.Is(err, ErrReleased) {
		return err
	}
	select {
	case <-g.confirmed:
	default:
		select {
		case <-g.confirmed:
		case <-ctx.Done():
			return &Error{Op: "release", Path: g.path, Reason: context.Cause(ctx)}
		}
	}
	if g.failure != nil {
		return &Error{Op: "release", Path: g.path, Reason: g.failure}
	}
	return nil
}

// check lets our own clock speak first.
func (g *Grant) check() {
	if g.tenure != nil {
		g.tenure.check()
		return
	}
	for _, p := range g.parts {
		p.check()
	}
}

func released(path string) error {
	return &Error{Op: "hold", Path: path, Reason: ErrReleased}
}

func revoked(path string, cause error) error {
	return &Error{Op: "hold", Path: path, Reason: fmt.Errorf("%w: %w", ErrRevoked, cause)}
}

// announce starts the callbacks of a grant that was just revoked.
func (g *Grant) announce(err error) {
	r := Revocation{Path: g.path, Token: g.token, Owner: g.set.Owner, Cause: err}
	for _, fn := range g.set.OnRevoke {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					g.set.Logger.Error("OnRevoke callback panicked", "path", r.Path, "token", r.Token, "panic", p)
				}
			}()
			fn(r)
		}()
	}
}

// together makes one grant of several. It ends when the first of them does.
func together(parts []*Grant) *Grant {
	paths := make([]string, len(parts))
	for i, p := range parts {
		paths[i] = p.path
	}
	g := &Grant{
		path:      strings.Join(paths, ","),
		token:     parts[len(parts)-1].token,
		parts:     parts,
		ending:    newEnding(),
		confirmed: make(chan struct{}),
	}
	for _, p := range parts {
		p.ending.onEnd(func(err error) { g.ending.finish(err) })
	}
	return g
}

// releaseParts releases all parts, last taken first. After the loss of one of
// them the others are kept until the caller says so here, since it may still be
// winding down what they protect.
func (g *Grant) releaseParts(ctx context.Context) {
	first := g.ending.finish(released(g.path))
	for _, p := range slices.Backward(g.parts) {
		p.Release(canceled(ctx)) // its outcome is in p.confirmed and p.failure
	}
	if !first {
		return
	}
	go func() { // ends when each part's release is confirmed or its session over
		var errs []error
		for _, p := range g.parts {
			<-p.confirmed
			errs = append(errs, p.failure)
		}
		g.failure = errors.Join(errs...)
		close(g.confirmed)
	}()
}

// canceled returns an ended context with the values of ctx: for starting
// releases without waiting for them one by one.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	return ctx
}
