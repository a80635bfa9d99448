package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

// A line is one lock and those who wait for it, over several sessions, in some number
// of flows.
type line struct {
	site    *site
	path    string
	flows   []string
	acquire []func(context.Context) (*recipes.Grant, error) // of each requester
	shared  []func(context.Context) (*recipes.Grant, error) // what they use
	opener  func(context.Context) (*recipes.Grant, error)
}

// newLine makes a line of n requesters. kind is "mutex", "fifo" or "flows", the number
// of which follows.
func newLine(s *site, sessions []*session.Session, n int, kind string, flows int) (*line, error) {
	l := &line{site: s, path: s.path()}
	for i := range flows {
		l.flows = append(l.flows, fmt.Sprintf("flow-%d", i+1))
	}
	var err error
	of := func(i int) (acquire func(context.Context) (*recipes.Grant, error)) {
		flow := i % max(1, flows)
		sess := sessions[(flow+i/max(1, flows))%len(sessions)]
		var failed error
		switch kind {
		case "mutex":
			var m *mutex.Mutex
			if m, failed = mutex.New(sess, l.path); failed == nil {
				acquire = m.Lock
			}
		case "fifo":
			var f *fair.Lock
			if f, failed = fair.New(sess, l.path); failed == nil {
				acquire = f.Lock
			}
		default:
			var f *fair.Lock
			if f, failed = fair.New(sess, l.path, fair.Flow(l.flows[flow], 1)); failed == nil {
				acquire = f.Lock
			}
		}
		err = errors.Join(err, failed)
		return acquire
	}
	// One for each session and flow, as a program would have it: a lock knows its
	// directory once it was used.
	shared := make([]func(context.Context) (*recipes.Grant, error), len(sessions)*max(1, flows))
	for i := range shared {
		shared[i] = of(i)
	}
	l.shared = shared
	for i := range n {
		l.acquire = append(l.acquire, shared[i%len(shared)])
	}
	opener, failed := mutex.New(sessions[0], l.path)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	l.opener = opener.Lock
	return l, nil
}

// waiting returns how many contenders there are, the holder included.
func (l *line) waiting() (int, error) {
	n, err := l.site.below(l.path)
	for _, f := range l.flows {
		more, failed := l.site.below(l.path + ".flows/" + f + "/queue")
		n, err = n+more, errors.Join(err, failed)
	}
	return n, err
}

// A stay is one turn in a line: from when it had the lock, until when it began to
// give it up.
type stay struct{ from, to time.Time }

// warm has every lock used once, so that it knows its directory.
func (l *line) warm(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(l.shared))
	for i, acquire := range l.shared {
		wg.Go(func() { errs[i] = recipes.Do(ctx, acquire, func(context.Context, *recipes.Grant) error { return nil }) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// drain lets everybody queue up behind a holder, and then the lock go once through
// all of them. seen may be nil: it is called with 0 when they are in line, and with
// the number of grants before each of those ends.
func (l *line) drain(ctx context.Context, hold time.Duration, seen func(grants int)) ([]stay, error) {
	if seen == nil {
		seen = func(int) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first, err := l.opener(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu    sync.Mutex
		stays []stay
		wg    sync.WaitGroup
	)
	for _, acquire := range l.acquire {
		wg.Go(func() {
			g, err := acquire(ctx)
			if err != nil {
				cancel(err)
				return
			}
			from := time.Now()
			if hold > 0 {
				time.Sleep(hold)
			}
			mu.Lock()
			stays = append(stays, stay{from, time.Now()})
			seen(len(stays))
			mu.Unlock()
			if err := g.Release(context.WithoutCancel(ctx)); err != nil {
				cancel(err)
			}
		})
	}
	for {
		n, err := l.waiting()
		if err != nil {
			cancel(err)
		}
		if n > len(l.acquire) || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	seen(0)
	if err := first.Release(context.WithoutCancel(ctx)); err != nil {
		cancel(err)
	}
	wg.Wait()
	return stays, context.Cause(ctx)
}

// between returns the times from each release to the next grant.
func between(stays []stay) []time.Duration {
	slices.SortFunc(stays, func(a, b stay) int { return a.from.Compare(b.from) })
	var out []time.Duration
	for i := range stays[1:] {
		out = append(out, stays[i+1].from.Sub(stays[i].to))
	}
	return out
}
