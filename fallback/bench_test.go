package fallback

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func benchClient(b *testing.B) *redis.Client {
	addr := os.Getenv("LK_REDIS")
	if addr == "" {
		b.Skip("no LK_REDIS")
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	b.Cleanup(func() { rdb.Close() })
	return rdb
}

func BenchmarkUncontended(b *testing.B) {
	c, err := New(benchClient(b))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	n := 0
	m, _ := NewMutex(c, "bench")
	for b.Loop() {
		n++
		g, err := m.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		g.Release(ctx)
	}
}

func BenchmarkPlainSetDel(b *testing.B) {
	rdb := benchClient(b)
	ctx := context.Background()
	s := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]); redis.call('PUBLISH', 'x', 'y') return 1 end return 0`)
	n := 0
	for b.Loop() {
		n++
		k := "plain"
		rdb.SetNX(ctx, k, "v"+strconv.Itoa(n), 10*time.Second)
		s.Run(ctx, rdb, []string{k}, "v"+strconv.Itoa(n))
	}
}

func BenchmarkParallel(b *testing.B) {
	c, err := New(benchClient(b))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		m, _ := NewMutex(c, "bench"+strconv.FormatUint(c.seq.Add(1), 10))
		for pb.Next() {
			g, err := m.Lock(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			g.Release(ctx)
		}
	})
}
