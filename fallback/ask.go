package fallback

import (
	"context"
	"errors"
	"time"
)

// patience bounds what is sent without a caller's context, where the Redis client looks
// at contexts at all.
const patience = 5 * time.Second

// An ask is how a query is to be asked.
type ask struct {
	query
	replicas int // 0: without WAIT
	wait     time.Duration
	limit    time.Duration // 0: as long as the Redis client takes
}

type answer struct {
	reply []any
	acks  int
	err   error
}

var errNoAnswer = errors.New("no answer yet")

// ended returns why a call must come to its end: ctx has, or the client was closed.
func (c *Client) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.closing.Err() != nil {
		return context.Cause(c.closing)
	}
	return nil
}

// ask runs a script and waits for the answer as long as ctx lets it, and the client is
// open. The Redis client does not look at ctx while it waits for a reply, so the request
// has a goroutine of its own; if ctx ends first, the request goes on, and what becomes
// of it is unknown.
func (c *Client) ask(ctx context.Context, a ask) ([]any, int, error) {
	if err := c.ended(ctx); err != nil {
		return nil, 0, err
	}
	got := make(chan answer, 1)
	if !c.spawn(func() { got <- c.answer(ctx, a) }) {
		return nil, 0, context.Cause(c.closing)
	}
	var limit <-chan time.Time
	if a.limit > 0 {
		t := time.NewTimer(a.limit)
		defer t.Stop()
		limit = t.C
	}
	select {
	case r := <-got:
		return r.reply, r.acks, r.err
	case <-limit:
		return nil, 0, errNoAnswer
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	case <-c.closing.Done():
		return nil, 0, context.Cause(c.closing)
	}
}

// answer runs a script and waits as long as the Redis client does, whatever becomes of
// ctx, of which it takes the values only.
func (c *Client) answer(ctx context.Context, a ask) (r answer) {
	ctx, cancel := c.detached(ctx)
	defer cancel()
	if a.replicas > 0 {
		r.reply, r.acks, r.err = c.runAndWait(ctx, a.query, a.replicas, a.wait)
	} else {
		r.reply, r.err = c.send(ctx, a.query)
	}
	return r
}

func (c *Client) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if c.obeys {
		return context.WithTimeout(ctx, patience)
	}
	return ctx, func() {}
}
