package fallback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A kind is what one sort of lock brings along: its keys and scripts. See scripts/ for
// what each of them gets and answers.
type kind struct {
	name     string
	suffixes []string // of its keys; the first renewed of them are what renew gets
	renewed  int
	acquire  *script
	leave    *script
	renew    *script
	list     *script
	sized    bool // recipes.Contender.Permits matters
	// excludes reports whether two such holds can't be there together.
	excludes func(a, b want) bool
}

// A lock is one lock object of any kind. It holds nothing.
type lock struct {
	c    *Client
	kind *kind
	name string // as the user calls it
	keys []string
	set  recipes.Settings
	cfg  config
}

// newLock checks what the user gave, and sends nothing.
func newLock(c *Client, k *kind, name string, opts []recipes.Option, allowed ...scope) (*lock, error) {
	if c == nil {
		return nil, errNoClient
	}
	if err := validateName(name); err != nil {
		return nil, err
	}
	l := &lock{c: c, kind: k, name: name, cfg: defaults()}
	l.cfg.prefix = c.cfg.prefix
	inherited := slices.Concat(c.inherited(allowed), opts)
	var err error
	if l.set, err = settle(inherited, &l.cfg, allowed...); err != nil {
		return nil, err
	}
	if l.cfg.replicas > 0 && c.timeout > 0 && l.cfg.replicaWait >= c.timeout {
		return nil, fmt.Errorf("%w: WaitReplicas(%d, %v): want less than the Redis client's ReadTimeout, %v",
			recipes.ErrInvalid, l.cfg.replicas, l.cfg.replicaWait, c.timeout)
	}
	l.keys = keysOf(c.cfg.prefix, name, k.suffixes)
	return l, nil
}

// realm and the name together name the lock in this process.
func (l *lock) realm() string { return l.c.realm + " " + l.c.cfg.prefix + " " + l.kind.name }

// key is for recipes.Lockable. The name comes first: every process must sort alike,
// also those that know the service under different names.
func (l *lock) key() string { return l.name + " " + l.realm() }

// px is for how long a key is kept: beyond the TTL, it is closed to others for the
// holder's LockDelay.
func (l *lock) px() int64 { return (l.cfg.ttl + l.set.LockDelay).Milliseconds() }

// claim is for how long a waiter gets the lock that does not know yet.
func (l *lock) claim() time.Duration { return min(l.cfg.ttl, l.cfg.live) }

// confirms says that the claim is not enough to begin with.
func (l *lock) confirms() bool {
	return l.cfg.fixed || l.set.LockDelay > 0 || l.cfg.replicas > 0
}

func (l *lock) renewKeys() []string { return l.keys[:l.kind.renewed] }

func (l *lock) withReplicas(q query) ask {
	return ask{query: q, replicas: l.cfg.replicas, wait: l.cfg.replicaWait}
}

// A want is what a contender asks for.
type want struct {
	mode string // "lock", "read", "write", …: recipes.Contender.Kind, without spaces
	size int    // how much of a lock that has a size
	args []any  // for the acquiring script, behind those that all of them get
}

// member is what the server knows of a contender: see line.lua.
func (l *lock) member(id string, w want) string {
	b := make([]byte, 0, 128)
	b = append(append(b, id...), ' ')
	for _, n := range []int64{l.claim().Milliseconds(), int64(l.cfg.passes), l.set.LockDelay.Milliseconds()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(append(b, w.mode...), ' ')
	b = append(strconv.AppendInt(b, int64(max(w.size, 1)), 10), ' ')
	return string(append(b, l.set.Owner...))
}

// enter is the beginning of every acquisition. It returns a nested grant where ctx
// comes from a live one, in one of the modes or in any, and an error where nothing is to
// be granted. Otherwise, leave must be called in the end.
func (l *lock) enter(ctx context.Context, modes ...string) (*recipes.Grant, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := l.c.enter(); err != nil {
		return nil, err
	}
	g, err := recipes.Nested(ctx, l.set, l.realm(), l.name, modes...)
	if g != nil || err != nil {
		l.leave()
	}
	return g, err
}

func (l *lock) leave() { l.c.calls.Done() }

// fail wraps the reason for which an operation failed.
func (l *lock) fail(op string, err error) error {
	var t *troubled
	if errors.As(err, &t) {
		return &recipes.Error{Op: op, Path: l.name, Reason: t.reason, LastErr: t.last}
	}
	return &recipes.Error{Op: op, Path: l.name, Reason: err}
}

// troubled is an error with what last went wrong on the way to it.
type troubled struct{ reason, last error }

func (t *troubled) Error() string   { return t.reason.Error() }
func (t *troubled) Unwrap() []error { return []error{t.reason, t.last} }

func withTrouble(reason, last error) error {
	if last == nil {
		return reason
	}
	return &troubled{reason, last}
}
