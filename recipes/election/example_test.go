package election_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes/election"
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

func ExampleElection_Run() {
	sess, stop := server()
	defer stop()
	e, err := election.New(sess, "/leaders/scheduler", election.Value([]byte("10.0.0.7:8080")))
	if err != nil {
		panic(err)
	}
	err = e.Run(context.Background(), func(ctx context.Context, t *election.Term) error {
		fmt.Println("elected:", t.Err() == nil)
		return nil // or go on until ctx ends, which it does with the term
	})
	fmt.Println(err)
	// Output:
	// elected: true
	// <nil>
}

func ExampleElection_Observe() {
	sess, stop := server()
	defer stop()
	ctx := context.Background()
	e, err := election.New(sess, "/leaders/scheduler")
	if err != nil {
		panic(err)
	}
	var term *election.Term
	for leader, err := range e.Observe(ctx) {
		switch {
		case errors.Is(err, election.ErrNoLeader) && term == nil:
			fmt.Println("nobody")
			if term, err = e.Campaign(ctx, []byte("10.0.0.7:8080")); err != nil {
				panic(err)
			}
			continue
		case errors.Is(err, election.ErrNoLeader):
			fmt.Println("nobody again")
		case err != nil:
			panic(err) // the last element
		case string(leader.Value) == "10.0.0.7:8080":
			fmt.Println("leader:", string(leader.Value))
			if err := term.Proclaim(ctx, []byte("10.0.0.7:9090")); err != nil {
				panic(err)
			}
			continue
		default:
			fmt.Println("now at:", string(leader.Value))
			if err := term.Resign(ctx); err != nil {
				panic(err)
			}
			continue
		}
		break
	}
	// Output:
	// nobody
	// leader: 10.0.0.7:8080
	// now at: 10.0.0.7:9090
	// nobody again
}

// A leader whose session is lost is told, and can change nothing any more.
func ExampleTerm() {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	e, err := election.New(sess, "/leaders/scheduler")
	if err != nil {
		panic(err)
	}
	term, err := e.Campaign(ctx, nil)
	if err != nil {
		panic(err)
	}
	srv.Expire(sess.ID())
	<-term.Done()
	fmt.Println(term.Proclaim(ctx, []byte("still me")))
	_, err = e.Leader(ctx)
	fmt.Println(err)
	// Output:
	// lockkeeper: hold /leaders/scheduler: revoked: session lost: session expired by the ensemble
	// lockkeeper: leader /leaders/scheduler: nobody leads
}
