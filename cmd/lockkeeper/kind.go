package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// kindFlags say what kind of lock run takes: a mutex if none is given.
type kindFlags struct {
	shared        bool
	rw            string  // "", "read" or "write"
	permits, take int     // 0: not given
	flow          *string // nil: not given
	weight        int     // 0: not given
	byHoldTime    bool
}

func (f *kindFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.shared, "shared", false, "hold the lock together with others that give -shared: short for -rw read")
	fs.Func("rw", "take a `side`, read or write, of a read/write lock: readers share it, a\nwriter has it alone", func(s string) error {
		if s != "read" && s != "write" {
			return fmt.Errorf("want read or write")
		}
		f.rw = s
		return nil
	})
	count(fs, &f.permits, semaphore.MaxSize, "permits", "take a semaphore with this `number` of permits, which is the same for all:\nso many hold it at a time")
	count(fs, &f.take, semaphore.MaxSize, "take", "take this `number` of the permits, all at once (default 1)")
	fs.Func("flow", "be one of the flow with this `name`: flows share the lock, whoever has more\nrequests", func(s string) error {
		f.flow = &s
		return nil
	})
	count(fs, &f.weight, fair.MaxWeight, "weight", "the flow's share of the lock is in proportion to this `number` (default 1)")
	fs.BoolVar(&f.byHoldTime, "by-hold-time", false, "flows share the time for which the lock is held, rather than the number of turns")
}

// check refuses what makes no sense together. It sends nothing.
func (f *kindFlags) check(lockDelay bool) error {
	switch {
	case f.shared && f.rw == "write":
		return usagef("-shared and -rw write exclude each other")
	case f.permits > 0 && f.shared:
		return usagef("-permits and -shared exclude each other")
	case f.permits > 0 && f.rw != "":
		return usagef("-permits and -rw exclude each other")
	case f.take > 0 && f.permits == 0:
		return usagef("-take goes with -permits")
	case f.take > f.permits:
		return usagef("-take %d is more than there are: -permits %d", f.take, f.permits)
	case lockDelay && f.permits > 0:
		return usagef("-lock-delay and -permits exclude each other: others hold the semaphore in the meantime anyway")
	case lockDelay && f.reads():
		return usagef("-lock-delay is not for readers: what they have sent does no harm")
	case f.flow == nil && f.weight > 0:
		return usagef("-weight goes with -flow")
	case f.flow == nil && f.byHoldTime:
		return usagef("-by-hold-time goes with -flow")
	case f.flow == nil:
		return nil
	case f.shared || f.rw != "":
		return usagef("-flow is not for read/write locks: -flow and -shared or -rw exclude each other")
	case f.permits > 0:
		return usagef("-flow is not for semaphores: -flow and -permits exclude each other")
	}
	if err := fair.ValidateFlow(*f.flow, max(f.weight, 1)); err != nil {
		return usagef("-flow, -weight: %w", err)
	}
	return nil
}

// environ is what a command finds in its environment, beside what every job has.
func (f *kindFlags) environ() []string {
	if f.flow == nil {
		return nil
	}
	return []string{"LOCKKEEPER_FLOW=" + *f.flow}
}

func (f *kindFlags) reads() bool { return f.shared || f.rw == "read" }

// What to do about a path of another kind.
const (
	ifMutex     = "a mutex, with -flow or without, wants none of -shared, -rw and -permits"
	ifRedis     = "a mutex wants none of -shared, -rw and -permits" // there are no flows
	ifRW        = "a read/write lock wants -shared (or -rw read), or -rw write"
	ifSemaphore = "a semaphore wants -permits with its size"
)

// A kind is a lock of one kind or another, and the side of it that is wanted.
type kind struct {
	lock, try  func(context.Context) (*recipes.Grant, error)
	contenders func(context.Context) ([]recipes.Contender, error)
	otherwise  string // what to do about a path of another kind
}

// kind makes the lock that the flags ask for.
func (f *kindFlags) kind(sess *session.Session, path string, opts []recipes.Option) (kind, error) {
	switch {
	case f.permits > 0:
		s, err := semaphore.New(sess, path, f.permits, opts...)
		if err != nil {
			return kind{}, err
		}
		return f.permitsOf(s, ifMutex), nil
	case f.shared || f.rw != "":
		l, err := rwlock.New(sess, path, opts...)
		if err != nil {
			return kind{}, err
		}
		return f.sideOf(l, ifMutex), nil
	case f.flow != nil:
		opts = append(opts, fair.Flow(*f.flow, max(f.weight, 1)))
		if f.byHoldTime {
			opts = append(opts, fair.ByHoldTime())
		}
		l, err := fair.New(sess, path, opts...)
		if err != nil {
			return kind{}, err
		}
		return exclusive(l), nil
	}
	m, err := mutex.New(sess, path, opts...)
	if err != nil {
		return kind{}, err
	}
	return exclusive(m), nil
}

// redisKind is kind on Redis.
func (f *kindFlags) redisKind(c *fallback.Client, key string, opts []recipes.Option) (kind, error) {
	switch {
	case f.permits > 0:
		s, err := fallback.NewSemaphore(c, key, f.permits, opts...)
		if err != nil {
			return kind{}, err
		}
		return f.permitsOf(s, ifRedis), nil
	case f.shared || f.rw != "":
		l, err := fallback.NewRWLock(c, key, opts...)
		if err != nil {
			return kind{}, err
		}
		return f.sideOf(l, ifRedis), nil
	}
	m, err := fallback.NewMutex(c, key, opts...)
	if err != nil {
		return kind{}, err
	}
	return exclusive(m), nil
}

// What the locks of either service can do.
type (
	exclusiveLock interface {
		Lock(context.Context) (*recipes.Grant, error)
		TryLock(context.Context) (*recipes.Grant, error)
		Contenders(context.Context) ([]recipes.Contender, error)
	}
	rwLock interface {
		exclusiveLock
		RLock(context.Context) (*recipes.Grant, error)
		TryRLock(context.Context) (*recipes.Grant, error)
	}
	permits interface {
		AcquireN(context.Context, int) (*recipes.Grant, error)
		TryAcquireN(context.Context, int) (*recipes.Grant, error)
		Contenders(context.Context) ([]recipes.Contender, error)
	}
)

func exclusive(l exclusiveLock) kind {
	return kind{lock: l.Lock, try: l.TryLock, contenders: l.Contenders, otherwise: ifRW + "; " + ifSemaphore}
}

// sideOf is the side of l that the flags ask for.
func (f *kindFlags) sideOf(l rwLock, ifExclusive string) kind {
	k := exclusive(l)
	if f.reads() {
		k.lock, k.try = l.RLock, l.TryRLock
	}
	k.otherwise = ifExclusive + "; " + ifSemaphore
	return k
}

// permitsOf is as many permits of s as the flags ask for.
func (f *kindFlags) permitsOf(s permits, ifExclusive string) kind {
	take := max(f.take, 1)
	return kind{
		lock:       func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, take) },
		try:        func(ctx context.Context) (*recipes.Grant, error) { return s.TryAcquireN(ctx, take) },
		contenders: s.Contenders,
		otherwise:  ifSemaphore + "; " + ifRW + "; " + ifExclusive,
	}
}
