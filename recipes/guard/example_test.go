package guard_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/guard"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A write into ZooKeeper is carried out while the lock is held, and refused once it is
// gone: here somebody removes the lock's node behind the holder's back.
func ExampleMulti() {
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
	if err := srv.Create("/orders/last", nil); err != nil {
		panic(err)
	}
	m, err := mutex.New(s, "/locks/orders")
	if err != nil {
		panic(err)
	}
	g, err := m.Lock(ctx)
	if err != nil {
		panic(err)
	}
	defer g.Release(ctx)

	write := func(text string) error {
		_, err := guard.Multi(ctx, g, &zk.SetDataRequest{Path: "/orders/last", Data: []byte(text), Version: -1})
		return err
	}
	fmt.Println("held:", write("4711"))

	if err := srv.DeleteAll("/locks/orders"); err != nil {
		panic(err)
	}
	err = write("4712")
	fmt.Println("lost:", errors.Is(err, recipes.ErrRevoked))
	data, _ := srv.Data("/orders/last")
	fmt.Printf("written: %s\n", data)
	// Output:
	// held: <nil>
	// lost: true
	// written: 4711
}
