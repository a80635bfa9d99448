package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
)

// A demand is what one flow asks for.
type demand struct {
	Flow       string // "" is none
	Weight     int
	Requesters int // each of them has one request at a time
	Hold       time.Duration
	// Pause is how many grants of others pass between two requests; nil: none.
	Pause func() int
}

// A turn is one grant.
type turn struct {
	Demand int // the index of it
	Token  recipes.Token
	Called int   // how many grants had been given when it was asked for
	Zxid   int64 // of a write while it was held, where there were any
	Held   time.Duration
}

// A load is flows that use one lock, all at the same time, until it was granted a
// number of times.
type load struct {
	site    *site
	demands []demand
	options []recipes.Option
	stamps  bool // each holder writes
	enough  func(turns []turn) bool

	path  string
	mu    sync.Mutex
	turns []turn
	moved chan struct{} // closed and replaced at each turn
}

// sessionsOfAFlow, at the most: one session's requests are carried out one after the
// other.
const sessionsOfAFlow = 4

var errEnough = errors.New("enough was seen")

// run returns the turns, in their order. Before the first of them everybody who asks
// without pauses is in line.
func (l *load) run(ctx context.Context) ([]turn, error) {
	l.path, l.moved = l.site.path(), make(chan struct{})
	if l.stamps {
		if _, err := l.site.raw.Create(l.path+"-stamp", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	first, done, err := l.site.sessions(ctx, 1, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	opener, err := fair.New(first[0], l.path)
	if err != nil {
		return nil, err
	}
	start, err := opener.Lock(ctx)
	if err != nil {
		return nil, err
	}

	locks := make([][]*fair.Lock, len(l.demands))
	for i, d := range l.demands {
		sessions, done, err := l.site.sessions(ctx, min(d.Requesters, sessionsOfAFlow), nil)
		if err != nil {
			return nil, err
		}
		defer done()
		for _, s := range sessions {
			opts := l.options
			if d.Flow != "" {
				opts = append([]recipes.Option{fair.Flow(d.Flow, d.Weight)}, opts...)
			}
			lock, err := fair.New(s, l.path, opts...)
			if err != nil {
				return nil, err
			}
			locks[i] = append(locks[i], lock)
		}
	}

	var inLine, wg sync.WaitGroup
	for i, d := range l.demands {
		for k := range d.Requesters {
			inLine.Add(1)
			joined := sync.OnceFunc(inLine.Done)
			wg.Go(func() {
				defer joined()
				if err := l.request(ctx, i, locks[i][k%len(locks[i])], joined, stop); err != nil {
					stop(fmt.Errorf("flow %q: %w", d.Flow, err))
				}
			})
		}
	}
	inLine.Wait()
	if err := start.Release(ctx); err != nil {
		stop(err)
	}
	wg.Wait() // before the sessions are closed
	if err := context.Cause(ctx); !errors.Is(err, errEnough) {
		return nil, err
	}
	return l.turns, nil
}

// request asks for the lock again and again until it was enough. joined is called when
// it is in line for the first time.
func (l *load) request(ctx context.Context, i int, lock *fair.Lock, joined func(), stop context.CancelCauseFunc) error {
	d := l.demands[i]
	for ctx.Err() == nil {
		if d.Pause != nil {
			joined()
			if l.pass(ctx, d.Pause()) != nil {
				return nil
			}
		}
		called := l.count()
		t, err := lock.Join(ctx)
		if err != nil {
			return unlessEnough(ctx, err)
		}
		joined()
		g, err := t.Wait(ctx)
		if err != nil {
			if left := t.Leave(context.WithoutCancel(ctx)); left != nil {
				return left
			}
			return unlessEnough(ctx, err)
		}
		if err := l.hold(i, g, called, stop); err != nil {
			return err
		}
		if err := g.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func unlessEnough(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errEnough) {
		return nil
	}
	return err
}

// hold uses the lock and takes it down.
func (l *load) hold(i int, g *recipes.Grant, called int, stop context.CancelCauseFunc) error {
	begin := time.Now()
	t := turn{Demand: i, Token: g.Token(), Called: called}
	l.mu.Lock()
	at := len(l.turns)
	l.turns = append(l.turns, t)
	close(l.moved)
	l.moved = make(chan struct{})
	l.mu.Unlock()
	if l.stamps {
		stat, err := l.site.raw.Set(l.path+"-stamp", nil, -1)
		if err != nil {
			return err
		}
		t.Zxid = stat.Mzxid
	}
	time.Sleep(l.demands[i].Hold)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Held = time.Since(begin)
	l.turns[at] = t
	if l.enough(l.turns) {
		stop(errEnough)
	}
	return nil
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.turns)
}

// pass returns when that many grants have been given.
func (l *load) pass(ctx context.Context, n int) error {
	for until := l.count() + n; ; {
		l.mu.Lock()
		now, moved := len(l.turns), l.moved
		l.mu.Unlock()
		if now >= until {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
