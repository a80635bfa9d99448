package session

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"
)

// The client's calls know no context: each runs on a goroutine of its own, which
// ends with the answer, the connection or the life, and is not waited for any
// longer than ctx allows.

// attempt makes one request as soon as the connection is up. sent is false if the
// request was certainly not handed to the client.
func attempt[T any](ctx context.Context, l *Life, request func(c *zk.Conn) (T, error)) (v T, sent bool, err error) {
	if err := l.waitForLink(ctx); err != nil {
		return v, false, err
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
		return v, false, l.Err()
	}
	select {
	case r := <-answer:
		return r.v, true, r.err
	case <-ctx.Done():
		return v, true, context.Cause(ctx)
	case <-l.ctx.Done():
		return v, true, l.Err()
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
		v, _, err := attempt(ctx, l, request)
		switch {
		case err == nil:
			return v, nil
		case ctx.Err() != nil && err == context.Cause(ctx), err == l.Err():
			return v, &Error{Op: op, Path: path, Reason: err, LastErr: last}
		}
		switch classify(err) {
		case answered:
			return v, &Error{Op: op, Path: path, Reason: err}
		case sessionOver:
			l.end(ErrExpired)
			return v, &Error{Op: op, Path: path, Reason: l.Err()}
		}
		last = err
		pause.wait(ctx, l)
	}
}

// once makes a request that must not be made twice unless the first was
// certainly not carried out.
func once[T any](ctx context.Context, l *Life, op, path string, request func(c *zk.Conn) (T, error)) (T, error) {
	pause := newPause()
	for {
		v, sent, err := attempt(ctx, l, request)
		if err == nil {
			return v, nil
		}
		stopped := ctx.Err() != nil && err == context.Cause(ctx) || err == l.Err()
		if stopped && !sent {
			return v, &Error{Op: op, Path: path, Reason: err}
		}
		if stopped {
			return v, &Error{Op: op, Path: path, Reason: err, LastErr: ErrOutcomeUnknown}
		}
		switch classify(err) {
		case answered:
			return v, &Error{Op: op, Path: path, Reason: err}
		case sessionOver:
			l.end(ErrExpired)
			return v, &Error{Op: op, Path: path, Reason: l.Err()}
		case unknown:
			return v, &Error{Op: op, Path: path, Reason: ErrOutcomeUnknown, LastErr: err}
		}
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
