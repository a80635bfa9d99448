package session

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// The client's calls know no context: each runs on a goroutine of its own, which
// ends with the answer, the connection or the life, and is not waited for any
// longer than ctx allows.

// progress is how far a request came.
type progress int

const (
	kept    progress = iota // the client certainly never had it
	pending                 // the client had it, and nobody waits for it any longer
	replied                 // the client said what became of it
)

// attempt makes one request as soon as the connection is up. Unless it is
// replied, the error is the cause of ctx's end or the life's.
func attempt[T any](ctx context.Context, l *Life, request func(c *zk.Conn) (T, error)) (v T, p progress, err error) {
	if err := l.waitForLink(ctx); err != nil {
		return v, kept, err
	}
	type result struct {
		v   T
		err error
	}
	answer := make(chan result, 1)
	if !l.spawn(func() {
		v, err := request(l.conn)
		answer <- result{v, err}
	}) {
		return v, kept, l.Err()
	}
	select {
	case r := <-answer:
		if l.ctx.Err() != nil && classify(r.err) != carriedOut && classify(r.err) != answered {
			return r.v, pending, l.Err() // the connection was closed because of it
		}
		return r.v, replied, r.err
	case <-ctx.Done():
		return v, pending, context.Cause(ctx)
	case <-l.ctx.Done():
		return v, pending, l.Err()
	}
}

// waitForLink returns nil once the connection is up, the cause of ctx's end, or
// the life's.
func (l *Life) waitForLink(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	gate, ended := l.gate, l.ended
	l.mu.Unlock()
	if ended != nil {
		return ended
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return l.Err()
	}
}

// repeat makes a request that may safely be made again, until there is an answer,
// ctx ends or the life is over.
func repeat[T any](ctx context.Context, l *Life, op, path string, request func(c *zk.Conn) (T, error)) (T, error) {
	var last error
	pause := newPause()
	for {
		v, p, err := attempt(ctx, l, request)
		if p != replied {
			return v, &Error{Op: op, Path: path, Reason: err, LastErr: last}
		}
		switch classify(err) {
		case carriedOut:
			return v, nil
		case answered:
			return v, &Error{Op: op, Path: path, Reason: err}
		case sessionOver:
			l.end(ErrExpired)
			return v, &Error{Op: op, Path: path, Reason: l.Err()}
		}
		if op == "delete" && fault.Is(fault.RemoveOnce) {
			return v, nil
		}
		last = err
		pause.wait(ctx, l)
	}
}

// once makes a request that must not be made twice unless the first was
// certainly not carried out.
func once[T any](ctx context.Context, l *Life, op, path string, request func(c *zk.Conn) (T, error)) (T, error) {
	var last error
	pause := newPause()
	for {
		v, p, err := attempt(ctx, l, request)
		switch p {
		case kept:
			return v, &Error{Op: op, Path: path, Reason: err, LastErr: last}
		case pending:
			return v, &Error{Op: op, Path: path, Reason: err, LastErr: ErrOutcomeUnknown}
		}
		switch classify(err) {
		case carriedOut:
			return v, nil
		case answered:
			return v, &Error{Op: op, Path: path, Reason: err}
		case sessionOver:
			l.end(ErrExpired)
			return v, &Error{Op: op, Path: path, Reason: l.Err()}
		case unknown:
			return v, &Error{Op: op, Path: path, Reason: ErrOutcomeUnknown, LastErr: err}
		}
		last = err
		pause.wait(ctx, l)
	}
}

// A pause keeps repetitions apart while the connection looks sound. When it is
// down, the next attempt waits for it anyway.
type pause struct{ b *backoff.ExponentialBackOff }

func newPause() *pause { return &pause{} }

func (p *pause) wait(ctx context.Context, l *Life) {
	if p.b == nil {
		p.b = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	}
	t := time.NewTimer(p.b.NextBackOff())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
}
