package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A hold is a place whose turn has come: what stands behind a grant.
type hold struct {
	p    *Place
	held *session.Hold
	data *Writer // of the node

	since time.Time // when the lock became this contender's

	mu     sync.Mutex
	heir   int64                             // sequence number of the successor that the holder named
	lost   error                             // before there was a grant
	onLoss func(cause error, gone bool)      // told of that
	revoke func(cause error, gone bool) bool // of the grant
	over   bool                              // it is given up: nobody can share it any more
}

// take makes a grant of a place whose turn has come, if ctx has not ended.
func (p *Place) take(ctx context.Context) (*recipes.Grant, error) {
	if fault.Is(fault.TokenBySequence) {
		return p.hold(ctx, recipes.Token(p.node.Seq+1))
	}
	return p.hold(ctx, recipes.Token(p.own.Czxid))
}

// delays reports whether a lock delay follows if this one dies while it holds.
func (p *Place) delays() bool { return p.q.settings.LockDelay > 0 && p.node.Alone }

// version is that of the node's data.
func (p *Place) version() int32 {
	if p.own == nil {
		return 0 // made by us just now
	}
	return p.own.Version
}

// made is the czxid of the node; 0 where it was not read, and its name is used by
// nobody else.
func (p *Place) made() int64 {
	if p.own == nil {
		return 0
	}
	return p.own.Czxid
}

func (p *Place) hold(ctx context.Context, token recipes.Token) (*recipes.Grant, error) {
	h, err := p.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return h.grant(token)
}

// prepare makes the lock this contender's, and watches over that from now on. What
// is left to do is to hand out the grant, or to leave, also where it fails: what was
// announced by then is taken back with the node, by leave or by the session's Close.
func (p *Place) prepare(ctx context.Context) (*hold, error) {
	if p.bid.Beside != nil && !p.besides {
		if err := p.bid.Beside(ctx, p.life); err != nil {
			return nil, err
		}
	}
	p.announcing = p.q.recipe.Announces || p.delays() // for what Close does meanwhile
	h := &hold{p: p, heir: nobody, data: NewWriter(p.life, p.path(), p.version(), p.isOwn)}
	var err error
	h.held, err = p.life.Hold(ctx, p.path(), p.made(), p.releaseOps(nobody, 0), h.lose)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, errPlaceLost
	}
	if err != nil {
		return nil, err
	}
	p.held = h.held
	if p.announcing {
		if err := p.announceHold(ctx); err != nil {
			if errors.Is(err, errPlaceTaken) { // nobody removes what stands there
				h.held.Drop()
			}
			return nil, err
		}
	}
	h.since = time.Now()
	return h, nil
}

// grant hands it out, unless it has been lost since.
func (h *hold) grant(token recipes.Token) (*recipes.Grant, error) {
	p := h.p
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return nil, placeLost(h.lost)
	}
	g, revoke := recipes.NewGrant(recipes.Spec{
		Realm:    p.q.sess.Realm(),
		Path:     p.q.path,
		Mode:     p.node.Kind,
		Token:    token,
		Settings: p.q.settings,
		Hold:     h,
	})
	h.revoke = revoke
	return g, nil
}

// releaseOps are what goes with the deletion of the node at a release: the mark
// by which the next in line knows that the holder released, and that nobody is
// left up to its number; and what the recipe adds to it, if it was held for some
// time. Where the record has changed since we read it, somebody
// else has put data there, and it is left.
func (p *Place) releaseOps(heir int64, held time.Duration) []any {
	if !p.ours || !p.node.Alone || p.q.sized() {
		return nil
	}
	r := newRecord(p.q.recipe.Name)
	r.Dir, r.Released, r.Heir = p.written.Czxid, p.node.Seq, heir
	r.Weight, r.Clock = p.record.Weight, p.record.Clock
	if p.shared {
		r.Released-- // others may be left under our number
	}
	version := p.written.Version
	if p.announcing { // that may have changed it
		version = -1
	}
	var more []any
	if held > 0 && p.bid.AtRelease != nil {
		r.Clock, more = p.bid.AtRelease(held, Turn{Seq: p.node.Seq, Last: nextSeq(p.written) - 1, Dir: r.Dir, Clock: r.Clock})
	}
	ops := append(more, &zk.SetDataRequest{Path: p.q.path, Data: r.encode(), Version: version})
	if p.record.Holder >= 0 || p.announcing && p.q.settings.LockDelay > 0 {
		ops = append(ops, &zk.DeleteRequest{Path: p.keeper(), Version: -1})
	}
	return ops
}

// lose is called by the session when the hold is lost.
func (h *hold) lose(cause error, gone bool) {
	cause = Translate(cause)
	h.mu.Lock()
	revoke := h.revoke
	if revoke == nil && h.lost == nil {
		h.lost = cause
		if h.onLoss != nil {
			h.onLoss(placeLost(cause), gone)
		}
	}
	h.mu.Unlock()
	if revoke != nil {
		revoke(cause, gone && !fault.Is(fault.ReleaseByName))
	}
}

// Remaining implements recipes.Hold. The session may know why the hold is over
// before it has told us: then the grant ends with that reason.
func (h *hold) Remaining() time.Duration {
	left := h.held.Remaining()
	if left <= 0 {
		if cause, gone := h.held.Lost(); cause != nil {
			h.lose(cause, gone)
		}
	}
	return left
}

// Verify implements recipes.Hold.
func (h *hold) Verify(ctx context.Context) error {
	err := h.held.Verify(ctx)
	var se *session.Error
	if errors.As(err, &se) {
		return Translate(se.Reason)
	}
	return err
}

// GiveUp implements recipes.Hold. After a release the lock is free at once; after
// a revocation, those who come next must know that there was no release where
// the holder asked for a delay.
func (h *hold) GiveUp(cause error, done func(error)) {
	h.mu.Lock()
	h.over = true
	ops := h.p.releaseOps(h.heir, max(1, time.Since(h.since)))
	h.mu.Unlock()
	if cause != nil && h.p.delays() {
		ops = nil
	}
	h.held.GiveUp(ops, func(err error) {
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			h.p.q.settings.Logger.Warn("a lock can't be released before its session ends", "node", h.p.path(), "error", err)
		}
		done(Removed(err))
	})
}

// Life returns the server session that the hold belongs to, and Node the path of
// its node, for package guard.
func (h *hold) Life() *session.Life { return h.p.life }

// Node returns the path of the contender's node, below the chroot.
func (h *hold) Node() string { return h.p.path() }

// Version returns the version of the node's data, for a check that no other node can
// pass: the first time, that takes a request.
func (h *hold) Version(ctx context.Context) (int32, error) {
	return h.data.Mark(ctx, h.p.ticket.encode())
}

// Reread has Version look again, after a check has failed that should not have.
func (h *hold) Reread(ctx context.Context) error { return h.data.Reread(ctx) }

// Slots returns the slots that are held, for recipes.Grant.
func (h *hold) Slots() []int { return h.p.slots }
