package fair_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A tenant's jobs share a lock with those of other tenants: tenant-a gets it twice as
// often as a flow of weight 1, however many jobs wait.
func ExampleFlow() {
	ctx := context.Background()
	srv, err := zktest.New() // a server in the process, for the example
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()

	l, err := fair.New(sess, "/locks/report", fair.Flow("tenant-a", 2))
	if err != nil {
		log.Fatal(err)
	}
	g, err := l.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Release(ctx)
	contenders, err := l.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for place, c := range contenders {
		fmt.Println(place, c.Flow, c.Holding)
	}
	// Output: 0 tenant-a true
}

// A place in the queue is taken now, and waited for later.
func ExampleTicket() {
	ctx := context.Background()
	srv, err := zktest.New() // a server in the process, for the example
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()

	l, err := fair.New(sess, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	first, err := l.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	t, err := l.Join(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Leave(ctx) // nothing happens if it has become a grant
	for ahead, err := range t.Ahead(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ahead, "ahead")
		first.Release(ctx)
	}
	g, err := t.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Release(ctx))
	// Output:
	// 1 ahead
	// 0 ahead
	// <nil>
}
