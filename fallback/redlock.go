package fallback

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Redlock is an exclusive lock over several Redis servers that know nothing of each
// other. It is held by whoever has the key on more than half of them, so that it
// survives the loss of the others, where a lock on one server or on a failover group
// does not. The algorithm is that of redis.io ("Distributed Locks with Redis"), with
// what its critics asked for: tokens, trust counted from before the sending, and
// servers that restarted empty left out for a while.
//
// What it does not do: it rests on time, more than a quorum in ZooKeeper does. A server
// whose clock jumps, or that loses what it acknowledged (without appendfsync always) and
// is not seen to have restarted, counts for a key that it does not have any more.
//
// There is no line: waiters ask again at random intervals of up to 250ms or so. The order
// of arrival is not kept, who asks again right after its release is likely to get it
// again, and waiting costs the servers commands. A lock costs a command to each server,
// and so does the release; both take one round trip, as fast as the faster half of the
// servers answers. A server that does not answer within [NodeTimeout] is given up and
// cleaned up behind the scenes.
//
// Tokens rise from grant to grant as long as the clocks of the servers differ by less
// than the TTL: each grant has the largest that its servers give out, which they learn
// with its release and its renewals.
//
// It may be shared by any number of goroutines, and each call is a contender of its own.
// It has goroutines of its own: it must be closed.
type Redlock struct {
	name  string
	set   recipes.Settings
	cfg   quorumConfig
	realm string
	nodes []*node

	closing context.Context // ends, with ErrSessionClosed, when Close begins
	close   context.CancelCauseFunc

	mu    sync.Mutex
	holds map[*quorumHold]struct{}
	wg    sync.WaitGroup // of what keeps them
	calls sync.WaitGroup // of users, and what they leave to be done
}

// quorumConfig is what the options of a Redlock add up to.
type quorumConfig struct {
	config
	nodeTimeout time.Duration
	restarted   bool // servers count that started a short time ago
}

// Limits and default of [NodeTimeout].
const (
	DefaultNodeTimeout = 50 * time.Millisecond
	MinNodeTimeout     = time.Millisecond
	MaxNodeTimeout     = 5 * time.Second
)

// NodeTimeout is for how long a [Redlock] waits for one of its servers; the default is
// 50ms, and it is a tenth of the TTL at most. From 1ms to 5s.
func NodeTimeout(d time.Duration) recipes.Option {
	return recipes.Extension(quorumSetting{"NodeTimeout", func(c *quorumConfig) error {
		if d < MinNodeTimeout || d > MaxNodeTimeout {
			return fmt.Errorf("%w: NodeTimeout(%v): want %v to %v", recipes.ErrInvalid, d, MinNodeTimeout, MaxNodeTimeout)
		}
		c.nodeTimeout = d
		return nil
	}})
}

// CountRestarted has servers of a [Redlock] count that started less than a TTL ago.
// Without it they don't, where they say when they started (INFO): one that has forgotten
// what it acknowledged must not do so again before that is over anyway. It is for
// servers that keep what they acknowledge (appendfsync always).
func CountRestarted() recipes.Option {
	return recipes.Extension(quorumSetting{"CountRestarted", func(c *quorumConfig) error { c.restarted = true; return nil }})
}

type quorumSetting struct {
	name  string
	apply func(*quorumConfig) error
}

var redlockKind = &kind{
	name:     "redlock",
	suffixes: []string{"redlock", "redlock-token", "redlock-queue", "redlock-alive"},
	acquire:  load("line", "redlock", "redlock_acquire"),
	leave:    load("line", "redlock", "redlock_leave"),
	renew:    load("line", "redlock", "redlock_renew"),
	list:     load("line", "redlock", "redlock_list"),
}

// NewRedlock returns the lock with that key (1 to 1024 bytes of any kind) on servers
// that are independent of each other: an odd number from 3 to 15, none of them twice,
// which clients with the same Addr are taken for.
// All who use the lock must name the same servers, and should have the same [TTL]: a server
// that restarted is left out for that of whoever asks. They stay the caller's, and are not
// closed.
//
// It asks each of them what it is (INFO, within 1s), and fails if one may evict keys, or
// if two are the same; those that don't answer are taken on trust. A bad argument is an
// error that matches recipes.ErrInvalid; nothing was sent then, unless only the answers
// showed it.
//
// Options: those of package recipes but for LockDelay; [TTL], [FixedLease], [Prefix],
// [AllowEviction], [NodeTimeout] and [CountRestarted].
func NewRedlock(servers []redis.UniversalClient, key string, opts ...recipes.Option) (*Redlock, error) {
	r := &Redlock{name: key, holds: make(map[*quorumHold]struct{}), cfg: quorumConfig{config: defaults(), nodeTimeout: DefaultNodeTimeout}}
	if err := r.configure(opts); err != nil {
		return nil, err
	}
	if err := validateName(key); err != nil {
		return nil, err
	}
	if err := validateServers(servers); err != nil {
		return nil, err
	}
	ids, err := identify(servers, r.cfg.config, r.set)
	if err != nil {
		return nil, err
	}
	for _, rdb := range servers {
		r.nodes = append(r.nodes, r.newNode(rdb))
	}
	slices.Sort(ids)
	r.realm = "redlock " + r.cfg.prefix + " " + strings.Join(ids, " ")
	r.closing, r.close = context.WithCancelCause(context.Background())
	return r, nil
}

func (r *Redlock) configure(opts []recipes.Option) (err error) {
	r.set, err = recipes.NewSettings(opts, func(v any) error {
		switch s := v.(type) {
		case quorumSetting:
			return s.apply(&r.cfg)
		case setting:
			switch s.name {
			case "TTL", "FixedLease", "Prefix", "AllowEviction":
				return s.apply(&r.cfg.config)
			}
			return fmt.Errorf("%w: option %s is not for a Redlock", recipes.ErrInvalid, s.name)
		}
		return fmt.Errorf("%w: option %T is not for a Redis lock", recipes.ErrInvalid, v)
	})
	if err == nil && r.set.LockDelay > 0 {
		err = fmt.Errorf("%w: LockDelay is not for a Redlock", recipes.ErrInvalid)
	}
	r.cfg.nodeTimeout = min(r.cfg.nodeTimeout, r.cfg.ttl/10)
	return err
}

const maxServers = 15

func validateServers(servers []redis.UniversalClient) error {
	if n := len(servers); n < 3 || n > maxServers || n%2 == 0 {
		return fmt.Errorf("%w: NewRedlock: %d servers: want an odd number from 3 to %d", recipes.ErrInvalid, n, maxServers)
	}
	for i, rdb := range servers {
		if rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil() {
			return fmt.Errorf("%w: NewRedlock: server %d is nil", recipes.ErrInvalid, i)
		}
		if _, _, err := checkClient(rdb); err != nil {
			return err
		}
		for j := range i {
			if sameServer(servers[j], rdb) {
				return fmt.Errorf("%w: NewRedlock: servers %d and %d are the same", recipes.ErrInvalid, j, i)
			}
		}
	}
	return nil
}

// sameServer tells what can be told without asking.
func sameServer(a, b redis.UniversalClient) bool {
	x, ok1 := a.(*redis.Client)
	y, ok2 := b.(*redis.Client)
	if !ok1 || !ok2 {
		return a == b
	}
	return x == y || x.Options().Addr == y.Options().Addr
}

// identifyWithin is how long the servers have to say what they are.
const identifyWithin = time.Second

// identify returns what names each server: its own id, or else its address.
func identify(servers []redis.UniversalClient, cfg config, set recipes.Settings) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), identifyWithin)
	defer cancel()
	ids, errs := make([]string, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, rdb := range servers {
		wg.Go(func() { ids[i], errs[i] = checkServer(ctx, rdb, cfg, set.Logger) })
	}
	wg.Wait()
	for i, rdb := range servers {
		if errs[i] != nil {
			if errors.Is(errs[i], recipes.ErrInvalid) {
				return nil, errs[i]
			}
			set.Logger.Warn("a server of a Redlock does not say what it is", "server", i, "error", errs[i])
		}
		if ids[i] == "" {
			ids[i] = fmt.Sprintf("%p", rdb)
			if c, ok := rdb.(*redis.Client); ok && c.Options().Addr != "" {
				ids[i] = c.Options().Addr
			}
			continue
		}
		for j := range i {
			if ids[i] == ids[j] {
				return nil, fmt.Errorf("%w: NewRedlock: servers %d and %d are the same", recipes.ErrInvalid, j, i)
			}
		}
	}
	return ids, nil
}

// Lock asks the servers until it has more than half of them, and returns the grant. ctx
// bounds the wait, never the hold. If ctx has ended, on entry or when the lock could be
// had, Lock fails, and promptly. A Lock that fails leaves nothing behind; what can't be
// known at that moment is seen to in the background.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrDeadlock (ctx comes
// from a live grant of this lock), ErrConflict (the key holds something else, which is
// left alone, on so many of the servers that the others are no majority), ErrPermission
// (the same), ErrSessionClosed.
func (r *Redlock) Lock(ctx context.Context) (*recipes.Grant, error) {
	return r.acquire(ctx, "lock", false)
}

// TryLock asks the servers once: it returns the grant, or recipes.ErrBusy if a server
// that answers says that another holds the lock, or tries to have it at the same moment,
// or else [ErrNoQuorum] if too few servers answer. It blocks only for as long as the
// servers take to answer, which [NodeTimeout] and ctx bound. Other errors are those of
// Lock.
func (r *Redlock) TryLock(ctx context.Context) (*recipes.Grant, error) {
	return r.acquire(ctx, "trylock", true)
}

// Contenders asks all servers, once, and returns the holder, if there is one, or
// [ErrNoQuorum] if too few servers answer. Waiters are not known to anybody. It is true
// of one moment only.
func (r *Redlock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	holder, err := r.holder(ctx)
	if err != nil {
		return nil, r.fail("contenders", err)
	}
	return holder, nil
}

// Path returns the key as it was given.
func (r *Redlock) Path() string { return r.name }

// Key implements recipes.Lockable.
func (r *Redlock) Key() string { return r.name + " " + r.realm }

// Close revokes what is held, with [recipes.ErrSessionClosed], gives it back, and returns
// when nothing is left on any server, or will have gone by itself: where one can't be
// reached, that takes a little more than twice the TTL, and is an error. It is idempotent.
func (r *Redlock) Close() error {
	r.mu.Lock()
	r.close(recipes.ErrSessionClosed)
	var all []*quorumHold
	for h := range r.holds {
		all = append(all, h)
	}
	r.mu.Unlock()
	for _, h := range all {
		h.lose(recipes.ErrSessionClosed, false)
	}
	r.wg.Wait()
	r.calls.Wait()
	errs := make([]error, len(r.nodes))
	var wg sync.WaitGroup
	for i, n := range r.nodes {
		wg.Go(func() { errs[i] = n.l.c.Close() })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
	}
	return nil
}

func (r *Redlock) fail(op string, err error) error {
	return (&lock{name: r.name}).fail(op, err)
}

// quorum is how many servers are more than half.
func (r *Redlock) quorum() int { return len(r.nodes)/2 + 1 }

// newID names one contender on all servers, for ever.
func (r *Redlock) newID() string {
	return randomID() + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}
