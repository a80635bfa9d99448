package redisconformance

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// RWLock makes a suite of b for the read/write lock.
func RWLock(b Backend) conformance.Suite {
	b.New = func(c *fallback.Client, key string, opts ...recipes.Option) (conformance.Lock, error) {
		l, err := fallback.NewRWLock(c, key, opts...)
		if err != nil {
			return conformance.Lock{}, err
		}
		return conformance.Lock{
			Enter:      []conformance.Entry{{Acquire: l.Lock, Try: l.TryLock}, {Acquire: l.RLock, Try: l.TryRLock}},
			Contenders: l.Contenders,
			Key:        l.Key,
		}, nil
	}
	b.List = func(ctx context.Context, c *fallback.Client, key string) ([]recipes.Contender, error) {
		l, err := fallback.NewRWLock(c, key)
		if err != nil {
			return nil, err
		}
		return l.Contenders(ctx)
	}
	b.Remove = removeFrom("rwlock")
	return conformance.Suite{Backend: b, Size: conformance.Whole, Ways: []conformance.Way{
		{Name: "Lock", Takes: conformance.Whole},
		{Name: "RLock", Takes: 1, Lacks: map[conformance.Capability]string{
			conformance.Delay: "a reader sends nothing that could do harm when it arrives late"}},
	}}
}

// Semaphore makes a suite of b for a semaphore of three permits.
func Semaphore(b Backend) conformance.Suite {
	const size = 3
	b.New = func(c *fallback.Client, key string, opts ...recipes.Option) (conformance.Lock, error) {
		s, err := fallback.NewSemaphore(c, key, size, opts...)
		if err != nil {
			return conformance.Lock{}, err
		}
		two := func(acquire func(context.Context, int) (*recipes.Grant, error)) conformance.Acquire {
			return func(ctx context.Context) (*recipes.Grant, error) { return acquire(ctx, 2) }
		}
		return conformance.Lock{
			Enter: []conformance.Entry{
				{Acquire: s.Acquire, Try: s.TryAcquire},
				{Acquire: two(s.AcquireN), Try: two(s.TryAcquireN)},
			},
			Contenders: s.Contenders,
			Key:        s.Permits(1).Key,
		}, nil
	}
	b.List = func(ctx context.Context, c *fallback.Client, key string) ([]recipes.Contender, error) {
		s, err := fallback.NewSemaphore(c, key, size)
		if err != nil {
			return nil, err
		}
		return s.Contenders(ctx)
	}
	b.Remove = removeFrom("semaphore")
	return conformance.Suite{
		Backend: b, Size: size,
		Ways:  []conformance.Way{{Name: "Acquire", Takes: 1}, {Name: "AcquireN 2", Takes: 2}},
		Lacks: map[conformance.Capability]string{conformance.Delay: "a delay is for a resource that one uses at a time"},
	}
}

// Fair makes a suite of b for the fair lock.
func Fair(b Backend) conformance.Suite {
	b.New = func(c *fallback.Client, key string, opts ...recipes.Option) (conformance.Lock, error) {
		l, err := fallback.NewFair(c, key, opts...)
		if err != nil {
			return conformance.Lock{}, err
		}
		return conformance.Lock{
			Enter:      []conformance.Entry{{Acquire: l.Lock, Try: l.TryLock}},
			Contenders: l.Contenders,
			Key:        l.Key,
		}, nil
	}
	b.List = func(ctx context.Context, c *fallback.Client, key string) ([]recipes.Contender, error) {
		l, err := fallback.NewFair(c, key)
		if err != nil {
			return nil, err
		}
		return l.Contenders(ctx)
	}
	b.Remove = removeFromMutex
	return conformance.Suite{Backend: b, Size: 1, Ways: []conformance.Way{{Name: "Lock", Takes: 1}}}
}

// removeFrom takes a holder or a waiter of a lock with room for several away. A holder
// that asked for a delay is made one that is dead: its part of the lock stays closed.
func removeFrom(kind string) func(ctx context.Context, rdb redis.UniversalClient, key, id string) error {
	return func(ctx context.Context, rdb redis.UniversalClient, key, id string) error {
		main, holds := base(key)+"lock", base(key)+"holds"
		record, err := rdb.HGet(ctx, holds, id).Result()
		switch {
		case err == redis.Nil:
			return removeWaiter(ctx, rdb, base(key)+kind, id)
		case err != nil:
			return err
		}
		if err := rdb.ZRem(ctx, main, id).Err(); err != nil {
			return err
		}
		// 'token since slots id claim more delay mode size owner'
		f := strings.SplitN(record, " ", 10)
		if f[6] == "0" {
			return nil // what it leaves in the other keys is for the scripts to notice
		}
		delay, err := time.ParseDuration(f[6] + "ms")
		if err != nil {
			return err
		}
		now, err := rdb.Time(ctx).Result()
		if err != nil {
			return err
		}
		f[3] = "-"
		_, err = rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.ZAdd(ctx, main, redis.Z{Score: float64(now.Add(delay).UnixMilli()), Member: "-" + id})
			tx.PExpire(ctx, main, delay)
			tx.HDel(ctx, holds, id)
			tx.HSet(ctx, holds, "-"+id, strings.Join(f, " "))
			tx.PExpire(ctx, holds, delay)
			return nil
		})
		return err
	}
}
