package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A writer publishes a new version, and goes on reading it: nobody can write in
// between.
func ExampleRWLock_downgrade() {
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
	catalogue, err := rwlock.New(s, "/locks/catalogue")
	if err != nil {
		panic(err)
	}

	w, err := catalogue.Lock(ctx)
	if err != nil {
		panic(err)
	}
	// … write, under w.Context(ctx) and with w.Token() …
	r, err := catalogue.RLock(w.Context(ctx)) // at once
	if err != nil {
		panic(err)
	}
	if err := w.Release(ctx); err != nil {
		fmt.Println("what was written was not protected to its end:", err)
	}

	_, err = catalogue.TryLock(ctx)
	fmt.Println("others can't write:", errors.Is(err, recipes.ErrBusy))
	other, err := catalogue.TryRLock(ctx)
	fmt.Println("others can read:", err == nil)
	_, err = catalogue.Lock(r.Context(ctx))
	fmt.Println("no way back:", errors.Is(err, recipes.ErrUpgrade))

	for _, g := range []*recipes.Grant{r, other} {
		if err := g.Release(ctx); err != nil {
			fmt.Println("what was read may be old:", err)
		}
	}
	// Output:
	// others can't write: true
	// others can read: true
	// no way back: true
}
