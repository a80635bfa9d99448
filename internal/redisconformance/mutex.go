package redisconformance

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// Mutex makes a suite of b for the mutex.
func Mutex(b Backend) conformance.Suite {
	b.New = func(c *fallback.Client, key string, opts ...recipes.Option) (conformance.Lock, error) {
		m, err := fallback.NewMutex(c, key, opts...)
		if err != nil {
			return conformance.Lock{}, err
		}
		l := conformance.Lock{Enter: []conformance.Entry{{Acquire: m.Lock, Try: m.TryLock}}, Key: m.Key}
		if b.Visitors == nil {
			l.Contenders = m.Contenders
		}
		return l, nil
	}
	b.List = func(ctx context.Context, c *fallback.Client, key string) ([]recipes.Contender, error) {
		m, err := fallback.NewMutex(c, key)
		if err != nil {
			return nil, err
		}
		return m.Contenders(ctx)
	}
	b.Remove = removeFromMutex
	return conformance.Suite{Backend: b, Size: 1, Ways: []conformance.Way{{Name: "Lock", Takes: 1}}}
}

// removeFromMutex takes the holder or a waiter away. A holder that asked for a delay is
// made one that is dead: the lock stays closed.
func removeFromMutex(ctx context.Context, rdb redis.UniversalClient, key, id string) error {
	main := base(key) + "lock"
	held, err := rdb.Get(ctx, main).Result()
	if err != nil && err != redis.Nil {
		return err
	}
	if f := strings.SplitN(held, " ", 10); len(f) == 10 && f[3] == id {
		if f[6] == "0" {
			return rdb.Del(ctx, main).Err()
		}
		f[3] = "-"
		return rdb.Do(ctx, "set", main, strings.Join(f, " "), "px", f[6]).Err()
	}
	return removeWaiter(ctx, rdb, base(key)+"mutex", id)
}

// base begins the names of a lock's keys.
func base(key string) string { return fallback.DefaultPrefix + ":{" + key + "}:" }

func removeWaiter(ctx context.Context, rdb redis.UniversalClient, line, id string) error {
	for _, member := range rdb.ZRange(ctx, line+"-queue", 0, -1).Val() {
		if strings.HasPrefix(member, id+" ") {
			if err := rdb.ZRem(ctx, line+"-queue", member).Err(); err != nil {
				return err
			}
		}
	}
	return rdb.ZRem(ctx, line+"-alive", id).Err()
}
