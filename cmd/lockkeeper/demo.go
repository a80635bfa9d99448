package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const demoHelp = `demo needs no server: it starts one inside this process. Three workers take turns
at one lock. In one turn the server ends the holder's session, in another the
holder's network goes down; both holders are told, and the lock goes on to the
next. In the end it checks that tokens rose and that no two grants overlapped;
the exit code is 1 if not.
`

const (
	demoWorkers = 3
	demoRounds  = 3 // of each worker
	demoTimeout = time.Second
	// What the server does to the first victim is not fair: it ends a session
	// ahead of its time, before the client's trust is over. A lock delay bridges
	// the moment until the holder knows.
	demoDelay = 500 * time.Millisecond

	expiredTurn = 2 // the turns in which something goes wrong
	cutOffTurn  = 6
)

func demoSubcommand() subcommand {
	return subcommand{
		name:     "demo",
		synopsis: "demo",
		summary:  "watch a lock being passed on, and lost",
		help:     demoHelp,
		flags: func(*flag.FlagSet) func([]string) error {
			return func(args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				return demo(os.Stdout)
			}
		},
	}
}

func demo(w io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	srv, err := zktest.New(zktest.InMemory(), zktest.TickTime(demoTimeout/4))
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Fprintf(w, "%d workers want one lock. Sessions last %v without news; after a holder died, the\nlock stays closed for another %v.\n\n",
		demoWorkers, demoTimeout, demoDelay)

	story := &story{w: w, start: time.Now()}
	errs := make(chan error, demoWorkers)
	for i := range demoWorkers {
		d := &worker{name: fmt.Sprintf("worker %d", i+1), srv: srv, story: story, told: make(chan struct{}, demoRounds)}
		go func() { errs <- d.work(ctx) }()
	}
	for range demoWorkers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	return story.check(demoWorkers*demoRounds, 2)
}

// A worker is a client of its own: in life it would be another process.
type worker struct {
	name  string
	srv   *zktest.Server
	story *story
	told  chan struct{} // one for each revocation
}

func (d *worker) work(ctx context.Context) error {
	sess, err := session.Open(ctx, session.Config{
		Servers: []string{d.srv.Addr()},
		Dial:    d.srv.Dial,
		Timeout: demoTimeout,
	})
	if err != nil {
		return err
	}
	defer sess.Close()
	m, err := mutex.New(sess, "/locks/demo",
		recipes.Owner(d.name), recipes.LockDelay(demoDelay), recipes.OnRevoke(d.revoked))
	if err != nil {
		return err
	}
	for range demoRounds {
		g, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		if err := d.turn(ctx, sess, g); err != nil {
			return err
		}
	}
	return nil
}

// turn is what a worker does under the lock.
func (d *worker) turn(ctx context.Context, sess *session.Session, g *recipes.Grant) error {
	n := d.story.granted(d.name, g.Token())
	work := time.NewTimer(150 * time.Millisecond)
	select {
	case <-work.C:
	case <-g.Done():
	}
	switch n {
	case expiredTurn:
		d.story.tell("server", "ends the session of %s", d.name)
		if err := d.srv.Expire(sess.ID()); err != nil {
			return err
		}
	case cutOffTurn:
		d.story.tell("network", "goes down for %s, which nobody is told", d.name)
		d.srv.BlackHole(sess.ID(), zktest.Both)
	default:
		d.story.ended(n, "released", d.name, g.Token(), "")
		return g.Release(ctx)
	}
	select {
	case <-g.Done():
	case <-ctx.Done():
		return fmt.Errorf("%s was not told of its loss: %w", d.name, ctx.Err())
	}
	d.story.over(n)
	<-d.told // exactly one, and not lost
	return nil
}

// revoked is the callback.
func (d *worker) revoked(r recipes.Revocation) {
	why := r.Cause.Error()
	if _, reason, ok := strings.Cut(why, recipes.ErrRevoked.Error()+": "); ok {
		why = reason
	}
	d.story.ended(-1, "REVOKED", d.name, r.Token, ": "+why)
	d.told <- struct{}{}
}

// A story prints what happens and remembers what is to be checked.
type story struct {
	mu          sync.Mutex
	w           io.Writer
	start       time.Time
	turns       []turn
	revocations int
}

type turn struct {
	token       recipes.Token
	start, over time.Time
}

// granted returns the number of the turn, from 0.
func (s *story) granted(name string, token recipes.Token) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turn{token: token, start: time.Now()})
	s.line(name, "granted   token %d", token)
	return len(s.turns) - 1
}

// ended is told of the end of turn n, or of a revocation for -1.
func (s *story) ended(n int, how, name string, token recipes.Token, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 {
		s.revocations++
	} else {
		s.turns[n].over = time.Now()
	}
	s.line(name, "%-8s  token %d%s", how, token, why)
}

// over notes that turn n is over.
func (s *story) over(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[n].over = time.Now()
}

func (s *story) tell(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(who, format, args...)
}

func (s *story) line(who, format string, args ...any) {
	fmt.Fprintf(s.w, "%7.3fs  %-8s  %s\n", time.Since(s.start).Seconds(), who, fmt.Sprintf(format, args...))
}

// check says whether all went as promised.
func (s *story) check(turns, revocations int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if len(s.turns) != turns || s.revocations != revocations {
		errs = append(errs, fmt.Errorf("%d grants and %d revocations, want %d and %d", len(s.turns), s.revocations, turns, revocations))
	}
	for i := 1; i < len(s.turns); i++ {
		before, now := s.turns[i-1], s.turns[i]
		if now.token <= before.token {
			errs = append(errs, fmt.Errorf("token %d came after token %d", now.token, before.token))
		}
		if before.over.IsZero() || now.start.Before(before.over) {
			errs = append(errs, fmt.Errorf("token %d was granted before the grant with token %d was over", now.token, before.token))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("check failed: %w", errors.Join(errs...))
	}
	fmt.Fprintf(s.w, "\nok: %d grants, %d of them revoked; every token was larger than the one before, and\nno two grants overlapped.\n", turns, revocations)
	return nil
}
