package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/follow"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// ErrNoLock: what is at the path is not a lock of a kind that this package can show.
var ErrNoLock = errors.New("that is no lock")

// An Observer looks at the lock at one path. It may be shared by any number of
// goroutines, and goes on working when the session behind it is lost and replaced.
type Observer struct {
	sess *session.Session
	path string

	mu    sync.Mutex
	ahead time.Duration // by how much the server's clock is ahead of ours, at least
	last  string        // the recipe that was last seen
}

// New returns an observer of the lock at path, which is taken below the session's
// chroot. New sends nothing; a nil session or a bad path is an error that matches
// recipes.ErrInvalid.
func New(s *session.Session, path string) (*Observer, error) {
	if s == nil {
		return nil, fmt.Errorf("lockkeeper: inspect: %w: the session is nil", recipes.ErrInvalid)
	}
	if err := queue.CheckPath(path); err != nil {
		return nil, fmt.Errorf("lockkeeper: inspect: %w", err)
	}
	return &Observer{sess: s, path: path}, nil
}

// Path returns the lock's path.
func (o *Observer) Path() string { return o.path }

// Look returns the queue as it is now. Where nobody is in line, or nothing is at the
// path, it is empty. It blocks for a few round trips, which ctx bounds; a lost
// connection it waits for.
//
// Errors, inside a *recipes.Error: ErrNoLock, together with what was found instead;
// context.Cause(ctx); recipes.ErrConflict (contenders of different recipes are at the
// path), ErrPermission, ErrSessionClosed.
func (o *Observer) Look(ctx context.Context) (Queue, error) {
	return follow.Now(ctx, o.sess, "inspect", o.path, func(ctx context.Context, life *session.Life) (Queue, []<-chan struct{}, error) {
		return o.look(ctx, &eye{life: life})
	})
}

// minEvery is the least time between two looks.
const minEvery = 10 * time.Millisecond

// Watch yields the queue as it is, at once, and then each change: who comes and goes,
// who gets the lock. It is told by the server and looks at most once each every (10 ms
// or more), and never for more than a tenth of the time; what came and went in between
// is not seen. It looks when the reader asks for the next element, so a slow reader
// skips to the latest. Ages are no change: see [Queue.At].
//
// It goes on over a lost session, with the next one, and says nothing of that: the
// state of the session does. Any other error (those of Look, or recipes.ErrInvalid for
// every) is the last element. It ends when ctx ends, without an element for that. Each
// range over it begins anew.
func (o *Observer) Watch(ctx context.Context, every time.Duration) iter.Seq2[Queue, error] {
	if every < minEvery {
		return func(yield func(Queue, error) bool) {
			yield(Queue{}, &recipes.Error{Op: "inspect", Path: o.path,
				Reason: fmt.Errorf("%w: a look each %v: want %v or more", recipes.ErrInvalid, every, minEvery)})
		}
	}
	return func(yield func(Queue, error) bool) {
		var next time.Time // when to look again at the earliest
		look := func(ctx context.Context, life *session.Life) (Queue, []<-chan struct{}, error) {
			if !sleepUntil(ctx, life, next) {
				return Queue{}, nil, life.Err()
			}
			began := time.Now()
			q, changed, err := o.look(ctx, &eye{life: life, watch: true})
			next = began.Add(max(every, 10*time.Since(began)))
			return q, changed, err
		}
		follow.Changes(ctx, o.sess, "inspect", o.path, look, same)(yield)
	}
}

// sleepUntil returns false if ctx or the life ends first.
func sleepUntil(ctx context.Context, life *session.Life, at time.Time) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-life.Done():
	}
	return false
}

// now guesses what the server's clock shows, which is not before any stamp that was
// seen.
func (o *Observer) now(seen []recipes.Contender) time.Time {
	ours := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range seen {
		o.ahead = max(o.ahead, c.Since.Sub(ours))
	}
	return ours.Add(o.ahead)
}
