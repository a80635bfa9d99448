package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockkeeper/lockkeeper/fallback"
)

// startRedis starts a server that keeps nothing.
func startRedis() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", dir)
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("no redis-server to start (give one with -redis): %w", err)
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	for range 100 {
		if rdb.Ping(context.Background()).Err() == nil {
			return addr, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("redis-server does not come up")
}

// ttl is the same for all of them.
const ttl = 10 * time.Second

func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
}

func redisLibraries(addr string) []library {
	count := func(sent ...string) func(context.Context) (int, error) {
		rdb := connect(addr)
		return func(ctx context.Context) (int, error) { return commands(ctx, rdb, sent) }
	}
	return []library{
		{
			name: "lockkeeper/fallback", sent: count("evalsha", "eval"),
			open: func() (client, error) {
				rdb := connect(addr)
				c, err := fallback.New(rdb, fallback.TTL(ttl))
				if err != nil {
					return client{}, err
				}
				locks := once(func(key string) (*fallback.Mutex, error) { return fallback.NewMutex(c, key) })
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						m, err := locks(key)
						if err != nil {
							return nil, err
						}
						g, err := m.Lock(ctx)
						if err != nil {
							return nil, err
						}
						return func() error { return g.Release(context.Background()) }, nil
					},
					close: func() { c.Close(); rdb.Close() },
				}, nil
			},
		},
		{
			name: "redsync (asks each 50 to 250 ms)", sent: count("set", "evalsha", "eval"),
			open: func() (client, error) {
				rdb := connect(addr)
				rs := redsync.New(goredis.NewPool(rdb))
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						m := rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1<<30))
						if err := m.LockContext(ctx); err != nil {
							return nil, err
						}
						return func() error { _, err := m.Unlock(); return err }, nil
					},
					close: func() { rdb.Close() },
				}, nil
			},
		},
		{
			name: "redislock (asks each 10 ms)", sent: count("evalsha", "eval"),
			open: func() (client, error) {
				rdb := connect(addr)
				locker := redislock.New(rdb)
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						l, err := locker.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)})
						if err != nil {
							return nil, err
						}
						return func() error { return l.Release(context.Background()) }, nil
					},
					close: func() { rdb.Close() },
				}, nil
			},
		},
		{
			name: "rueidislock (majority 1)", sent: count("evalsha", "eval"),
			open: func() (client, error) {
				locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
					ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}, KeyMajority: 1, KeyValidity: ttl,
				})
				if err != nil {
					return client{}, err
				}
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						_, cancel, err := locker.WithContext(ctx, key)
						if err != nil {
							return nil, err
						}
						return func() error { cancel(); return nil }, nil
					},
					close: locker.Close,
				}, nil
			},
		},
	}
}

// commands returns how often the server has been sent one of these. Where a library
// uses scripts, only those are counted and not what they call.
func commands(ctx context.Context, rdb *redis.Client, names []string) (int, error) {
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	total := 0
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		for _, n := range names {
			var calls int
			if n == name {
				fmt.Sscanf(rest, "calls=%d", &calls)
				total += calls
			}
		}
	}
	return total, nil
}
