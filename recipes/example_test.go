package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// start runs a ZooKeeper server in this process, and opens a session on it. In a
// program it is session.Open with the addresses of an ensemble.
func start() (*zktest.Server, *session.Session, func()) {
	srv, err := zktest.New(zktest.InMemory())
	if err != nil {
		panic(err)
	}
	s, err := session.Open(context.Background(), session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial})
	if err != nil {
		panic(err)
	}
	return srv, s, func() { s.Close(); srv.Close() }
}

// Do acquires, runs the function and releases, whatever happens in between.
func ExampleDo() {
	_, s, stop := start()
	defer stop()
	m, err := mutex.New(s, "/locks/report")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	err = recipes.Do(ctx, m.Lock, func(ctx context.Context, g *recipes.Grant) error {
		// ctx ends if the lock is lost; g.Token() goes with every write.
		fmt.Println("held:", g.Err() == nil)
		return nil
	})
	fmt.Println("result:", err)
	// Output:
	// held: true
	// result: <nil>
}

// A lock can be lost while it is held. Whoever works under the grant's context is
// told at once, and the release says so, too.
func ExampleGrant_Done() {
	srv, s, stop := start()
	defer stop()
	told := make(chan recipes.Revocation)
	m, err := mutex.New(s, "/locks/report", recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	g, err := m.Lock(ctx)
	if err != nil {
		panic(err)
	}
	work := g.Context(ctx)

	srv.Expire(s.ID()) // the ensemble ends the session behind our back

	<-g.Done()
	fmt.Println("revoked:", errors.Is(g.Err(), recipes.ErrRevoked))
	fmt.Println("session lost:", errors.Is(context.Cause(work), recipes.ErrSessionLost))
	fmt.Println("callback for:", (<-told).Path)
	fmt.Println("release says so:", errors.Is(g.Release(ctx), recipes.ErrRevoked))

	g, err = m.Lock(ctx) // the lock object goes on working, under the next session
	fmt.Println("again:", err)
	g.Release(ctx)
	// Output:
	// revoked: true
	// session lost: true
	// callback for: /locks/report
	// release says so: true
	// again: <nil>
}

// Go has no thread identity: the call chain is in the context.
func ExampleReentrant() {
	_, s, stop := start()
	defer stop()
	m, err := mutex.New(s, "/locks/report", recipes.Reentrant())
	if err != nil {
		panic(err)
	}
	update := func(ctx context.Context) error { // locks, whether or not its caller has
		return recipes.Do(ctx, m.Lock, func(ctx context.Context, g *recipes.Grant) error {
			return nil
		})
	}
	err = recipes.Do(context.Background(), m.Lock, func(ctx context.Context, g *recipes.Grant) error {
		return update(ctx) // with this ctx, not with another
	})
	fmt.Println("with Reentrant:", err)

	plain, err := mutex.New(s, "/locks/plain")
	if err != nil {
		panic(err)
	}
	err = recipes.Do(context.Background(), plain.Lock, func(ctx context.Context, g *recipes.Grant) error {
		_, err := plain.Lock(ctx)
		return err
	})
	fmt.Println("without, refused at once:", errors.Is(err, recipes.ErrDeadlock))
	// Output:
	// with Reentrant: <nil>
	// without, refused at once: true
}

// Two accounts are locked together, or none of them, with one deadline.
func ExampleAll() {
	_, s, stop := start()
	defer stop()
	from, err := mutex.New(s, "/accounts/2")
	if err != nil {
		panic(err)
	}
	to, err := mutex.New(s, "/accounts/1")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := recipes.All(ctx, from, to)
	if err != nil {
		panic(err)
	}
	fmt.Println("taken in one order:", g.Path())
	for _, p := range g.Parts() {
		fmt.Println(p.Path(), "has a token of its own:", p.Token() != 0)
	}
	fmt.Println("released:", g.Release(ctx))
	// Output:
	// taken in one order: /accounts/1,/accounts/2
	// /accounts/1 has a token of its own: true
	// /accounts/2 has a token of its own: true
	// released: <nil>
}
