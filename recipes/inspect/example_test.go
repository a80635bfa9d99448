package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A lock is watched, of whatever kind it is.
func ExampleObserver_Watch() {
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
	m, err := mutex.New(sess, "/locks/orders", recipes.Owner("web1"))
	if err != nil {
		log.Fatal(err)
	}
	g, err := m.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	o, err := inspect.New(sess, "/locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	for q, err := range o.Watch(ctx, 100*time.Millisecond) {
		if err != nil {
			log.Fatal(err)
		}
		if len(q.Contenders) == 0 {
			fmt.Println("free")
			break
		}
		for _, c := range q.Contenders {
			fmt.Println(q.Recipe, c.Place, c.Owner, c.Holding)
		}
		g.Release(ctx)
	}
	// Output:
	// mutex 0 web1 true
	// free
}
