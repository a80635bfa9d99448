package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A user's test, as in the README: does my program stop when it loses its lock?
func TestTheLockIsLost(t *testing.T) {
	srv := zktest.Start(t) // fails the test if a session, a watch or a goroutine is left
	sess, err := session.Open(t.Context(), session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	lost := make(chan recipes.Revocation, 1)
	orders, err := mutex.New(sess, "/locks/orders", recipes.OnRevoke(func(r recipes.Revocation) { lost <- r }))
	if err != nil {
		t.Fatal(err)
	}
	g, err := orders.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if err := srv.Expire(sess.ID()); err != nil {
		t.Fatal(err)
	}
	<-g.Done()
	if r := <-lost; !errors.Is(r.Cause, recipes.ErrSessionLost) || r.Token != g.Token() {
		t.Errorf("told of %+v", r)
	}
	if err := g.Release(t.Context()); !errors.Is(err, recipes.ErrRevoked) {
		t.Errorf("release: %v", err)
	}
}

// In a bubble even a time-out is a matter of milliseconds: here the client is
// cut off, nobody tells it of anything, and it stops by its own clock, before the
// server gives its lock to another.
func TestTheHolderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		cfg := session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial, Timeout: 10 * time.Second}
		lock := func(ctx context.Context) (*session.Session, *recipes.Grant) {
			sess, err := session.Open(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			orders, err := mutex.New(sess, "/locks/orders")
			if err != nil {
				t.Fatal(err)
			}
			g, err := orders.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return sess, g
		}
		first, mine := lock(t.Context())
		defer first.Close()
		srv.BlackHole(first.ID(), zktest.Both)

		second, theirs := lock(t.Context()) // some ten seconds later, but for nobody who waits
		defer second.Close()
		select {
		case <-mine.Done():
		default:
			t.Error("two hold the lock")
		}
		if theirs.Token() <= mine.Token() {
			t.Errorf("token %d after %d", theirs.Token(), mine.Token())
		}
		srv.Heal()
		if err := theirs.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The loss of a lock, in a program.
func ExampleServer_Expire() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()
	orders, err := mutex.New(sess, "/locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	g, err := orders.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	work := g.Context(ctx)

	if err := srv.Expire(sess.ID()); err != nil {
		log.Fatal(err)
	}
	<-work.Done() // the work is told to stop
	fmt.Println(errors.Is(context.Cause(work), recipes.ErrRevoked))
	// Output: true
}
