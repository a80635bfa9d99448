package fallback

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Limits and defaults of the options.
const (
	DefaultTTL = 10 * time.Second
	MinTTL     = 100 * time.Millisecond
	MaxTTL     = 24 * time.Hour

	DefaultWaiterTimeout = 3 * time.Second
	MinWaiterTimeout     = 100 * time.Millisecond
	MaxWaiterTimeout     = time.Minute

	DefaultPasses = 8
	MaxPasses     = 100

	DefaultPrefix = "lockkeeper"
)

// config is what the options of this package add up to.
type config struct {
	ttl         time.Duration
	fixed       bool
	live        time.Duration // how long a waiter is believed to live
	passes      int
	replicas    int
	replicaWait time.Duration

	prefix   string
	realm    string
	evicting bool
}

func defaults() config {
	return config{ttl: DefaultTTL, live: DefaultWaiterTimeout, passes: DefaultPasses, prefix: DefaultPrefix}
}

// A setting is an option of this package. scope says what it is for.
type setting struct {
	name  string
	scope scope
	apply func(*config) error
}

type scope int

const (
	clientOnly scope = iota
	anyLock
	mutexOnly
)

// TTL is how long a lock stays with a holder that is not heard of; the default is
// 10s. The client renews what it holds each third of it, all locks with the same TTL
// together, so that it bounds how long the lock is closed after a holder died, not how
// long it can be held. From 100ms to 24h, in whole milliseconds, from the moment when
// the lock is granted: it can't be a point in time.
func TTL(d time.Duration) recipes.Option {
	return option("TTL", anyLock, func(c *config) error {
		if d < MinTTL || d > MaxTTL {
			return fmt.Errorf("%w: TTL(%v): want a time from the grant on, %v to %v", recipes.ErrInvalid, d, MinTTL, MaxTTL)
		}
		c.ttl = d.Truncate(time.Millisecond)
		return nil
	})
}

// FixedLease leaves out the renewal: the grant ends, with [recipes.ErrSessionLost],
// when the TTL is over, however well its holder is.
func FixedLease() recipes.Option {
	return option("FixedLease", anyLock, func(c *config) error { c.fixed = true; return nil })
}

// WaiterTimeout is how long a waiter that is not heard of keeps its place; the default
// is 3s. Waiters say that they live each third of it. Any number of waiters that die
// together delay the others by it once. From 100ms to 1m. All who use the lock should
// have the same.
func WaiterTimeout(d time.Duration) recipes.Option {
	return option("WaiterTimeout", anyLock, func(c *config) error {
		if d < MinWaiterTimeout || d > MaxWaiterTimeout {
			return fmt.Errorf("%w: WaiterTimeout(%v): want %v to %v", recipes.ErrInvalid, d, MinWaiterTimeout, MaxWaiterTimeout)
		}
		c.live = d.Truncate(time.Millisecond)
		return nil
	})
}

// Passes is how often in a row goroutines that share a client may pass a mutex on
// among themselves, in their order of arrival and without asking the server, before
// those of other clients come in; the default is 8. It ends after 100ms in any case.
// Each has a token of its own. With 0 every goroutine stands in line on the server,
// and the order of arrival is kept strictly, at the price of one command more for each
// grant.
func Passes(n int) recipes.Option {
	return option("Passes", mutexOnly, func(c *config) error {
		if n < 0 || n > MaxPasses {
			return fmt.Errorf("%w: Passes(%d): want 0 to %d", recipes.ErrInvalid, n, MaxPasses)
		}
		c.passes = n
		return nil
	})
}

// WaitReplicas has every grant and every renewal wait until n replicas have it, for d
// at most. If fewer acknowledge, the lock is given back, and Lock fails with
// [ErrNotReplicated]; a renewal that too few acknowledge does not count. It makes it
// less likely that a failover loses the lock; it does not rule it out: Redis may
// promote a replica that was not among them. n from 1 to 100, d from 1ms to 1s.
func WaitReplicas(n int, d time.Duration) recipes.Option {
	return option("WaitReplicas", anyLock, func(c *config) error {
		if n < 1 || n > 100 || d < time.Millisecond || d > time.Second {
			return fmt.Errorf("%w: WaitReplicas(%d, %v): want 1 to 100 replicas, and 1ms to 1s", recipes.ErrInvalid, n, d)
		}
		c.replicas, c.replicaWait = n, d.Truncate(time.Millisecond)
		return nil
	})
}

// Prefix begins every key and channel; the default is "lockkeeper". It is an option of
// [New] only. Clients with different prefixes do not see each other's locks.
func Prefix(prefix string) recipes.Option {
	return option("Prefix", clientOnly, func(c *config) error {
		c.prefix = prefix
		return validatePrefix(prefix)
	})
}

// AllowEviction has [New] accept a server that removes keys when its memory is full.
// Such a server gives a lock away while it is held. It is an option of New only.
func AllowEviction() recipes.Option {
	return option("AllowEviction", clientOnly, func(c *config) error { c.evicting = true; return nil })
}

// Realm names the service, so that locks of two clients of it are known to be the same
// by [recipes.All] and for re-entrancy. It is an option of New only, for services that
// do not say who they are: by default, the run_id of the server is taken, or of the
// first master of a cluster, and else no two clients have the same.
func Realm(name string) recipes.Option {
	return option("Realm", clientOnly, func(c *config) error {
		if name == "" || len(name) > 256 {
			return fmt.Errorf("%w: Realm(%q): want 1 to 256 bytes", recipes.ErrInvalid, name)
		}
		c.realm = name
		return nil
	})
}

func option(name string, s scope, apply func(*config) error) recipes.Option {
	return recipes.Extension(setting{name, s, apply})
}

// settle applies options to cfg and returns what package recipes knows of. allowed says
// which of ours there may be.
func settle(opts []recipes.Option, cfg *config, allowed ...scope) (recipes.Settings, error) {
	return recipes.NewSettings(opts, func(v any) error {
		s, ok := v.(setting)
		if q, quorum := v.(quorumSetting); quorum {
			return fmt.Errorf("%w: option %s is for a Redlock only", recipes.ErrInvalid, q.name)
		}
		if !ok {
			return fmt.Errorf("%w: option %T is not for a Redis lock", recipes.ErrInvalid, v)
		}
		if slices.Contains(allowed, s.scope) {
			return s.apply(cfg)
		}
		if s.scope == clientOnly {
			return fmt.Errorf("%w: option %s is for New only: all locks of a client share it", recipes.ErrInvalid, s.name)
		}
		return fmt.Errorf("%w: option %s is not for this lock", recipes.ErrInvalid, s.name)
	})
}

// forLocks returns the options that a lock takes over from its client.
func forLocks(opts []recipes.Option) []recipes.Option {
	var list []recipes.Option
	for _, o := range opts {
		if scopeOf(o) != clientOnly {
			list = append(list, o)
		}
	}
	return list
}

// scopeOf returns what an option is for; those of package recipes are for any lock.
func scopeOf(o recipes.Option) scope {
	found := anyLock
	recipes.NewSettings([]recipes.Option{o}, func(v any) error {
		if s, ok := v.(setting); ok {
			found = s.scope
		}
		return nil
	})
	return found
}

// inherited returns the client's options that are for a lock of these scopes.
func (c *Client) inherited(allowed []scope) []recipes.Option {
	var list []recipes.Option
	for _, o := range c.opts {
		if slices.Contains(allowed, scopeOf(o)) {
			list = append(list, o)
		}
	}
	return list
}
