package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func ExampleMutex_Lock() {
	srv, err := miniredis.Run() // a Redis server in this process
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	c, err := fallback.New(rdb)
	if err != nil {
		panic(err)
	}
	defer c.Close() // gives back what is held

	m, err := fallback.NewMutex(c, "orders", fallback.TTL(5*time.Second))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	g, err := m.Lock(ctx) // waits its turn
	if err != nil {
		panic(err)
	}
	fmt.Println("held:", g.Path())

	_, err = m.TryLock(ctx) // does not wait
	fmt.Println("busy:", errors.Is(err, recipes.ErrBusy))

	// … work under g.Context(ctx), and send g.Token() along with each write …

	if err := g.Release(ctx); err != nil {
		fmt.Println("the work was not protected to its end:", err)
	}
	// Output:
	// held: orders
	// busy: true
}
