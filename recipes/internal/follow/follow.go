// Package follow has the loop of every iterator that shows something on the
// server as it is now, and then each change.
package follow

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Look sees what there is, and returns channels of which one is closed as soon
// as that may have changed.
type Look[T any] func(ctx context.Context, life *session.Life) (seen T, changed []<-chan struct{}, err error)

// Changes yields what look sees at once, and then each time that it is not the
// same as what was yielded last. It looks only when the reader asks, so a slow
// reader skips to the latest. It goes on over lost sessions, with the next one;
// any other error is the last element. It ends when ctx does. No goroutine is
// left when the reader stops.
func Changes[T any](ctx context.Context, s *session.Session, op, path string, look Look[T], same func(a, b T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last T
		for first := true; ctx.Err() == nil; {
			seen, changed, life, err := lookOnce(ctx, s, look)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				var none T
				yield(none, queue.Fail(op, path, err))
				return
			}
			if first || !same(last, seen) {
				if !yield(seen, nil) {
					return
				}
				first, last = false, seen
			}
			wait(append([]<-chan struct{}{ctx.Done(), life.Done()}, changed...))
		}
	}
}

// Now returns what look sees.
func Now[T any](ctx context.Context, s *session.Session, op, path string, look Look[T]) (T, error) {
	seen, _, _, err := lookOnce(ctx, s, look)
	return seen, queue.Fail(op, path, err)
}

// lookOnce looks, again if the session is lost meanwhile.
func lookOnce[T any](ctx context.Context, s *session.Session, look Look[T]) (seen T, changed []<-chan struct{}, life *session.Life, err error) {
	for {
		if life, err = s.Life(ctx); err != nil {
			return seen, nil, nil, err
		}
		seen, changed, err = look(ctx, life)
		lost := life.Err()
		if err == nil || lost == nil || errors.Is(lost, session.ErrClosed) || ctx.Err() != nil {
			return seen, changed, life, err
		}
	}
}

// wait returns when one of the channels is closed.
func wait(channels []<-chan struct{}) {
	cases := make([]reflect.SelectCase, len(channels))
	for i, c := range channels {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	reflect.Select(cases)
}
