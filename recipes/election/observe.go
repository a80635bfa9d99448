package election

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/follow"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Leader is who leads, as it can be seen from outside.
type Leader struct {
	ID    string // of its place in the queue: recipes.Contender.ID
	Owner string // as given by recipes.Owner
	Value []byte // what it published last; nil if that is empty
	Token recipes.Token
	Since time.Time // when its term began, by the server's clock
}

// Leader returns who leads now, or ErrNoLeader. It takes two reads, whatever the
// number of candidates. It is true of one moment, and as the server sees it to
// which we are connected, which may lag behind the ensemble; a leader that lost
// the connection may know already that its term is over. To decide whether to
// write, use the token.
//
// Errors, inside a *recipes.Error: ErrNoLeader, context.Cause(ctx),
// recipes.ErrConflict, ErrPermission, ErrSessionClosed.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	l, err := follow.Now(ctx, e.sess, "leader", e.Path(), func(ctx context.Context, life *session.Life) (*queue.Leader, []<-chan struct{}, error) {
		return e.q.Announced(ctx, life, false)
	})
	if err == nil && l == nil {
		err = e.vacancy("leader")
	}
	if err != nil {
		return Leader{}, err
	}
	return Leader(*l), nil
}

// Observe yields who leads now, at once, and then each change: of the leader, of
// the value, and each vacancy, which is an element with the error ErrNoLeader. It
// looks when the reader asks for the next element: a slow reader skips to the
// latest, so that what came and went in between, a short vacancy too, is not seen.
// It goes on over a lost session, with the next one, and says nothing of that: the
// state of the session does. Any other error (those of Leader) is the last element.
// It ends when ctx ends, without an element for that. Each range over it begins
// anew.
//
// An observer watches two nodes, the path's and the leader's, and is no burden to
// the candidates, who watch neither, except that the next in line watches the
// leader's, too. It lists nothing. All observers of one path in one session share
// these watches and what they read: one read for a new value, three for a change of
// leader, and one more for each of them that hears of the old leader's node before
// it hears of the path's. Where the path does not exist yet, a watch waits for it.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	changes := follow.Changes(ctx, e.sess, "observe", e.Path(), func(ctx context.Context, life *session.Life) (*queue.Leader, []<-chan struct{}, error) {
		return e.q.Announced(ctx, life, true)
	}, same)
	return func(yield func(Leader, error) bool) {
		for l, err := range changes {
			var seen Leader
			switch {
			case err != nil:
			case l == nil:
				err = e.vacancy("observe")
			default:
				seen = Leader(*l)
			}
			if !yield(seen, err) {
				return
			}
		}
	}
}

func (e *Election) vacancy(op string) error {
	return &recipes.Error{Op: op, Path: e.Path(), Reason: ErrNoLeader}
}

func same(a, b *queue.Leader) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Token == b.Token && bytes.Equal(a.Value, b.Value)
}
