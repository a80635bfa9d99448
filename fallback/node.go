package fallback

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A node is one server of a Redlock.
type node struct {
	l    *lock        // whose client is for this server only
	late atomic.Int32 // requests that were given up and are still on their way
}

// maxLate is how many requests may be on their way to a server that does not answer.
// Any more are not sent: a server that hangs must not collect them.
const maxLate = 4

var errHangs = errors.New("the server does not answer")

func (r *Redlock) newNode(rdb redis.UniversalClient) *node {
	c := newClient(rdb, r.cfg.config, r.set)
	c.obeys, c.timeout, _ = checkClient(rdb)
	return &node{l: &lock{
		c: c, kind: redlockKind, name: r.name, set: r.set, cfg: r.cfg.config,
		keys: keysOf(r.cfg.prefix, r.name, redlockKind.suffixes),
	}}
}

// unanswered is the error of a request that was given up. It is still on its way.
type unanswered struct {
	void atomic.Bool // it turned out that it was not carried out, and won't be
}

func (*unanswered) Error() string { return "no answer within the NodeTimeout" }

// ask runs a script on the server. If there is no answer within the limit, the request
// goes on, and what becomes of it is unknown.
func (n *node) ask(limit time.Duration, s *script, args ...any) ([]any, error) {
	if n.late.Load() >= maxLate {
		return nil, errHangs
	}
	const underWay, returned, givenUp = 0, 1, 2
	var state atomic.Int32
	missed := &unanswered{}
	got := make(chan answer, 1)
	if !n.l.c.spawn(func() {
		ctx, cancel := n.l.c.detached(context.Background())
		defer cancel()
		reply, err := n.l.c.run(ctx, query{s, n.l.keys, args})
		if !state.CompareAndSwap(underWay, returned) {
			n.late.Add(-1)
			is := fateOf(err)
			missed.void.Store(is == postponed || is == refused)
		}
		got <- answer{reply: reply, err: err}
	}) {
		return nil, errHangs // closed
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case a := <-got:
		return a.reply, a.err
	case <-t.C:
		n.late.Add(1)
		if state.CompareAndSwap(underWay, givenUp) {
			return nil, missed
		}
		n.late.Add(-1)
		a := <-got
		return a.reply, a.err
	}
}

// A vote is the answer of one server.
type vote struct {
	n     int // which
	reply []any
	err   error
}

// ask asks all servers at the same time. Each votes, not later than the limit, and none
// waits for the reader.
func (r *Redlock) ask(s *script, args ...any) <-chan vote {
	votes := make(chan vote, len(r.nodes))
	for i, n := range r.nodes {
		go func() { // ends with the limit
			reply, err := n.ask(r.cfg.nodeTimeout, s, args...)
			votes <- vote{i, reply, err}
		}()
	}
	return votes
}
