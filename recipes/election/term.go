package election

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
)

// A Term is the time for which a candidate leads. It is a grant: its token is
// larger for every later term, Done and Context end with it, and it is revoked by
// our own clock before another can be elected. All methods are safe for concurrent
// use.
type Term struct {
	*recipes.Grant
	q *queue.Queue
}

// Proclaim changes the published value. It is written only while this term lasts,
// atomically with a check of that on the server: once another can lead, Proclaim
// changes nothing and returns what Err does. Values are published in the order in
// which their calls were carried out, one after the other; one whose call failed
// because ctx ended may be published all the same, but never after a later one.
//
// It takes one round trip. It wakes the observers and the next in line, who reads
// three nodes and waits on; no other candidate. Errors, inside a *recipes.Error:
// recipes.ErrInvalid (the value has more than MaxValue bytes: nothing was sent),
// context.Cause(ctx), ErrReleased, or ErrRevoked and the reason.
func (t *Term) Proclaim(ctx context.Context, value []byte) error {
	const op = "proclaim"
	if err := queue.CheckValue(value); err != nil {
		return queue.Fail(op, t.Path(), err)
	}
	return queue.Publish(ctx, t.Grant, op, append([]byte(nil), value...))
}

// Resign ends the term, and the next in line leads. It is the grant's Release.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// ResignTo ends the term as Resign does, and has the named candidate lead next if
// it is still in line by then; otherwise, the next in line does. candidate is a
// recipes.Contender's ID, as listed by Contenders, which stands for one place in
// the queue: one that has been left since, or an ID of long ago, names nobody. An
// ID that is no candidate's at all is refused with recipes.ErrInvalid: then the
// term goes on.
//
// It is a wish and costs no safety: terms never overlap, and tokens rise. Since a
// token goes with a place in the queue, those who stand before the named one can't
// be passed: each of them gives its place up when its turn comes and queues again
// at the tail, with a new ID, behind those who came after the named one, and in no
// promised order among themselves. That costs one hand-over for each. Where the
// wish can't be written (somebody else put data into the path's node), it is lost,
// and so it is if the session ends before it was sent.
func (t *Term) ResignTo(ctx context.Context, candidate string) error {
	return t.q.ReleaseTo(ctx, t.Grant, candidate)
}
