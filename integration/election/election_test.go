// Package election_test runs an election on real servers: leaders lose their
// sessions, servers are killed, and an observer sees it all.
package election_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/session"
)

// A client is one session and an election on it.
type client struct {
	*election.Election
	mu        sync.Mutex
	connected string // to which address it was last connected
}

func open(t *testing.T, path string, timeout time.Duration, servers ...string) *client {
	t.Helper()
	c := &client{}
	s, err := session.Open(await.Context(t), session.Config{
		Servers: servers,
		Timeout: timeout,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err == nil {
				c.mu.Lock()
				c.connected = addr
				c.mu.Unlock()
			}
			return conn, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c.Election, err = election.New(s, path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected
}

func campaign(t *testing.T, c *client, value string) *election.Term {
	t.Helper()
	term, err := c.Campaign(await.Context(t), []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// later is a campaign that goes on while the test does something else. It returns
// when the candidate is the n-th in line.
func later(t *testing.T, c *client, value string, n int) <-chan *election.Term {
	t.Helper()
	won := make(chan *election.Term, 1)
	ctx := await.Context(t)
	go func() {
		term, err := c.Campaign(ctx, []byte(value))
		if err != nil {
			t.Error(err)
		}
		won <- term
	}()
	await.InLine(t, c, n)
	return won
}

// An observer collects what it sees. Vacancies that are over at once may be missed,
// so they are no part of it.
type observer struct {
	seen chan election.Leader
}

func observe(t *testing.T, c *client) *observer {
	o := &observer{seen: make(chan election.Leader, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for l, err := range c.Observe(ctx) {
			switch {
			case err == nil:
				o.seen <- l
			case !errors.Is(err, election.ErrNoLeader):
				t.Errorf("observer: %v", err)
			}
		}
	}()
	return o
}

// sees waits for an element, and checks that it is the next.
func (o *observer) sees(t *testing.T, term *election.Term, value string) {
	t.Helper()
	select {
	case l := <-o.seen:
		if string(l.Value) != value || l.Token != term.Token() || l.Since.IsZero() {
			t.Errorf("observed %q of term %v, want %q of %v", l.Value, l.Token, value, term.Token())
		}
	case <-time.After(await.Patience):
		t.Fatalf("%q is not observed", value)
	}
}

func resign(t *testing.T, term *election.Term) {
	t.Helper()
	if err := term.Resign(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

func proclaim(t *testing.T, term *election.Term, value string) {
	t.Helper()
	if err := term.Proclaim(await.Context(t), []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func TestLeadersSessionDies(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	path := e.LockPath(t)
	l := link.New(t, e.Server(0))
	a, b := open(t, path, 3*time.Second, l.Addr()), open(t, path, 30*time.Second, e.Servers()...)
	o := observe(t, open(t, path, 30*time.Second, e.Servers()...))
	first := campaign(t, a, "a")
	o.sees(t, first, "a")
	proclaim(t, first, "a2")
	o.sees(t, first, "a2")
	won := later(t, b, "b", 2)

	start := time.Now()
	l.Hole()
	second := <-won
	select {
	case <-first.Done():
	default:
		t.Error("elected while the one who was cut off still leads")
	}
	t.Logf("the next leads %v after the cut", time.Since(start))
	if err := first.Err(); !errors.Is(err, recipes.ErrSessionLost) {
		t.Error(err)
	}
	if second.Token() <= first.Token() {
		t.Errorf("token %v after %v", second.Token(), first.Token())
	}
	o.sees(t, second, "b")
	l.Heal()
	if err := first.Proclaim(await.Context(t), []byte("late")); !errors.Is(err, recipes.ErrRevoked) {
		t.Error(err)
	}
	again := later(t, a, "a3", 2) // the one who was cut off is a candidate again
	resign(t, second)
	third := <-again
	o.sees(t, third, "a3")
	resign(t, third)
}

// Each server to which the leader is connected dies, and comes back: the term goes
// on, and so do the observer and the candidate.
func TestServersOfTheLeaderDie(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	path := e.LockPath(t)
	a, b := open(t, path, 30*time.Second, e.Servers()...), open(t, path, 30*time.Second, e.Servers()...)
	o := observe(t, open(t, path, 30*time.Second, e.Servers()...))
	term := campaign(t, a, "a")
	o.sees(t, term, "a")
	won := later(t, b, "b", 2)
	for i, value := range []string{"first", "second", "third"} {
		server := -1
		for k, addr := range e.Servers() {
			if addr == a.server() {
				server = k
			}
		}
		start := time.Now()
		e.Kill(t, server)
		proclaim(t, term, value)
		t.Logf("kill %d: server %d, proclaimed after %v", i, server, time.Since(start))
		o.sees(t, term, value)
		if err := term.Verify(await.Context(t)); err != nil {
			t.Fatal(err)
		}
		e.Start(t, server)
		e.WaitReady(t)
	}
	select {
	case <-won:
		t.Fatal("two lead")
	default:
	}
	resign(t, term)
	next := <-won
	o.sees(t, next, "b")
	resign(t, next)
}

// The ensemble's leader dies at the moment of a hand-over, with a successor named.
func TestEnsemblesLeaderDiesAtAHandOver(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	path := e.LockPath(t)
	var clients []*client
	for range 4 {
		clients = append(clients, open(t, path, 30*time.Second, e.Servers()...))
	}
	o := observe(t, open(t, path, 30*time.Second, e.Servers()...))
	first := campaign(t, clients[0], "0")
	o.sees(t, first, "0")
	one := later(t, clients[1], "1", 2)
	two := later(t, clients[2], "2", 3)
	heir := later(t, clients[3], "3", 4)
	cs, err := clients[0].Contenders(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	leader := e.Leader(t)
	go func() {
		defer close(killed)
		if err := first.ResignTo(await.Context(t), cs[3].ID); err != nil {
			t.Error(err)
		}
	}()
	e.Kill(t, leader)
	<-killed
	term := <-heir
	o.sees(t, term, "3")
	if term.Token() <= first.Token() {
		t.Errorf("token %v after %v", term.Token(), first.Token())
	}
	resign(t, term)
	for range 2 { // those who gave way are still candidates
		var next *election.Term
		select {
		case next = <-one:
		case next = <-two:
		case <-await.Context(t).Done():
			t.Fatal("a candidate is lost")
		}
		if next.Token() <= term.Token() {
			t.Errorf("token %v after %v", next.Token(), term.Token())
		}
		term = next
		resign(t, term)
	}
	e.Start(t, leader)
	e.WaitReady(t)
}

// The largest value fits into a real server's requests.
func TestLargestValue(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path := e.LockPath(t)
	a := open(t, path, 30*time.Second, e.Servers()...)
	v := make([]byte, election.MaxValue)
	term, err := a.Campaign(await.Context(t), v)
	if err != nil {
		t.Fatal(err)
	}
	v[0] = 1
	if err := term.Proclaim(await.Context(t), v); err != nil {
		t.Fatal(err)
	}
	l, err := open(t, path, 30*time.Second, e.Servers()...).Leader(await.Context(t))
	if err != nil || string(l.Value) != string(v) {
		t.Errorf("%d bytes came back, %v", len(l.Value), err)
	}
	resign(t, term)
}
