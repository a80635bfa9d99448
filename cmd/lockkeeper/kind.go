package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// kindFlags say what kind of lock run takes: a mutex if none is given.
type kindFlags struct {
	shared        bool
	rw            string // "", "read" or "write"
	permits, take int    // 0: not given
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
	count(fs, &f.permits, "permits", "take a semaphore with this `number` of permits, which is the same for all:\nso many hold it at a time")
	count(fs, &f.take, "take", "take this `number` of the permits, all at once (default 1)")
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
	case f.permits > semaphore.MaxSize:
		return usagef("-permits %d: want %d at most", f.permits, semaphore.MaxSize)
	case f.take > 0 && f.permits == 0:
		return usagef("-take goes with -permits")
	case f.take > f.permits:
		return usagef("-take %d is more than there are: -permits %d", f.take, f.permits)
	case lockDelay && f.permits > 0:
		return usagef("-lock-delay and -permits exclude each other: others hold the semaphore in the meantime anyway")
	case lockDelay && f.reads():
		return usagef("-lock-delay is not for readers: what they have sent does no harm")
	}
	return nil
}

func (f *kindFlags) reads() bool { return f.shared || f.rw == "read" }

// A kind is a lock of one kind or another, and the side of it that is wanted.
type kind struct {
	lock, try  func(context.Context) (*recipes.Grant, error)
	contenders func(context.Context) ([]recipes.Contender, error)
	otherwise  string // what to do about a path of another kind
}

// kind makes the lock that the flags ask for.
func (f *kindFlags) kind(sess *session.Session, path string, opts []recipes.Option) (kind, error) {
	const (
		ifMutex     = "a mutex wants none of -shared, -rw and -permits"
		ifRW        = "a read/write lock wants -shared (or -rw read), or -rw write"
		ifSemaphore = "a semaphore wants -permits with its size"
	)
	switch {
	case f.permits > 0:
		s, err := semaphore.New(sess, path, f.permits, opts...)
		if err != nil {
			return kind{}, err
		}
		take := max(f.take, 1)
		return kind{
			lock:       func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, take) },
			try:        func(ctx context.Context) (*recipes.Grant, error) { return s.TryAcquireN(ctx, take) },
			contenders: s.Contenders,
			otherwise:  ifSemaphore + "; " + ifRW + "; " + ifMutex,
		}, nil
	case f.shared || f.rw != "":
		l, err := rwlock.New(sess, path, opts...)
		if err != nil {
			return kind{}, err
		}
		k := kind{lock: l.Lock, try: l.TryLock, contenders: l.Contenders, otherwise: ifMutex + "; " + ifSemaphore}
		if f.reads() {
			k.lock, k.try = l.RLock, l.TryRLock
		}
		return k, nil
	}
	m, err := mutex.New(sess, path, opts...)
	if err != nil {
		return kind{}, err
	}
	return kind{lock: m.Lock, try: m.TryLock, contenders: m.Contenders, otherwise: ifRW + "; " + ifSemaphore}, nil
}
