package fallback

import (
	"context"
	"time"
)

// patience bounds what is sent without a caller's context, and how long a request may
// wait for a connection.
const patience = 5 * time.Second

// An ask is how a query is to be asked.
type ask struct {
	query
	replicas int // 0: without WAIT
	wait     time.Duration
}

type answer struct {
	reply []any
	acks  int
	err   error
}

// ask runs a script and waits for the answer as long as ctx lets it. The Redis client
// does not look at ctx while it waits for a reply, so the request has a goroutine of
// its own; if ctx ends first, the request goes on, and the error is the cause of ctx's
// end: what becomes of it is unknown.
func (c *Client) ask(ctx context.Context, a ask) ([]any, int, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	got := make(chan answer, 1)
	if !c.spawn(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		var r answer
		if a.replicas > 0 {
			r.reply, r.acks, r.err = c.runAndWait(ctx, a.query, a.replicas, a.wait)
		} else {
			r.reply, r.err = c.run(ctx, a.query)
		}
		got <- r
	}) {
		return nil, 0, context.Cause(c.closing)
	}
	select {
	case r := <-got:
		return r.reply, r.acks, r.err
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
}
