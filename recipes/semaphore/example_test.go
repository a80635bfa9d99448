package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Three licences are shared by all who run jobs, wherever they run.
func ExampleSemaphore() {
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

	licences, err := semaphore.New(s, "/licences", 3)
	if err != nil {
		panic(err)
	}
	small, err := licences.Acquire(ctx)
	if err != nil {
		panic(err)
	}
	large, err := licences.AcquireN(ctx, 2) // both at once, or none
	if err != nil {
		panic(err)
	}
	fmt.Println("slots:", small.Slots(), large.Slots())

	_, err = licences.TryAcquire(ctx) // does not wait
	fmt.Println("busy:", errors.Is(err, recipes.ErrBusy))

	if err := licences.Resize(ctx, 4); err != nil { // one more was bought
		panic(err)
	}
	g, err := licences.TryAcquire(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("slot:", g.Slots()[0])

	for _, g := range []*recipes.Grant{small, large, g} {
		if err := g.Release(ctx); err != nil {
			fmt.Println("the work was not protected to its end:", err)
		}
	}
	// Output:
	// slots: [0] [1 2]
	// busy: true
	// slot: 3
}
