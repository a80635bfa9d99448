package barrier_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockkeeper/lockkeeper/recipes/barrier"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// server returns a session on a server in this process. A program of yours opens
// one on its ensemble.
func server() (*session.Session, func()) {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	sess, err := session.Open(context.Background(), session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		panic(err)
	}
	return sess, func() { sess.Close(); srv.Close() }
}

func ExampleBarrier() {
	sess, stop := server()
	defer stop()
	ctx := context.Background()
	b, err := barrier.New(sess, "/maintenance")
	if err != nil {
		panic(err)
	}
	b.Set(ctx)
	done := make(chan error)
	go func() { done <- b.Wait(ctx) }()
	fmt.Println("set")
	b.Remove(ctx)
	fmt.Println("passed:", <-done)
	// Output:
	// set
	// passed: <nil>
}

func ExampleDouble() {
	sess, stop := server()
	defer stop()
	ctx := context.Background()
	d, err := barrier.NewDouble(sess, "/rounds", 3)
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for range 3 { // in as many processes
		wg.Go(func() {
			p, err := d.Enter(ctx) // until three have come
			if err != nil {
				panic(err)
			}
			fmt.Println("inside")
			if err := p.Leave(ctx); err != nil { // until all three have left
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output:
	// inside
	// inside
	// inside
}
