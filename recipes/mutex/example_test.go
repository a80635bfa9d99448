package mutex_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func ExampleMutex_Lock() {
	srv, err := zktest.New(zktest.InMemory()) // a ZooKeeper server in this process
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	s, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	m, err := mutex.New(s, "/locks/orders")
	if err != nil {
		panic(err)
	}
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
	// held: /locks/orders
	// busy: true
}
