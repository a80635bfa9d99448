package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Place is one contender's node in the queue, until it is left or held.
type Place struct {
	q      *Queue
	life   *session.Life
	node   Node
	prefix string   // of the names of our keyword in this directory
	czxid  int64    // of this directory
	own    *zk.Stat // of the node: proof that it was there and ours
	ticket ticket   // what is in it
	guard  *session.Watch

	record  record
	written *zk.Stat // the directory's, when record was read
	ours    bool     // the record is ours to write
	saw     Node     // the contender that was last watched

	held *session.Hold // nil until the lock is this contender's

	bid    Bid
	slots  []int // that it was admitted to
	unsure bool  // the record does not say who was admitted

	announced  bool            // the record says that we hold
	announcing bool            // whether it does is not known
	telling    <-chan struct{} // closed when that is known
	besides    bool            // Bid.Beside has run since the last one ahead went
	shared     bool            // there may be others under our number; see share.go
	left       bool            // the node is gone, or its removal is under way
}

func (p *Place) path() string { return p.q.path + "/" + p.node.Name }

// errPlaceLost: the own node is gone although the session lives. errPlaceTaken:
// and somebody else's stands there now, which is not ours to remove.
var (
	errPlaceLost  = errors.New("contender's node was removed")
	errPlaceTaken = fmt.Errorf("%w and replaced", errPlaceLost)
)

// look reads the directory's record and the own node, side by side, and what the
// recipe wants to know besides.
func (p *Place) look(ctx context.Context) error {
	proof := make(chan error, 1)
	go func() { proof <- p.prove(ctx) }()
	if p.bid.Beside == nil {
		err := p.readRecord(ctx)
		return cmp.Or(<-proof, err)
	}
	beside := make(chan error, 1)
	go func() { beside <- p.bid.Beside(ctx, p.life) }()
	err := p.readRecord(ctx)
	err = cmp.Or(cmp.Or(<-proof, err), <-beside)
	p.besides = err == nil
	return err
}

// prove reads the own node: that it is there and belongs to this session is what
// a grant rests on, and its czxid is the token.
func (p *Place) prove(ctx context.Context) error {
	stat, err := p.life.Exists(ctx, p.path())
	if err != nil {
		return err
	}
	if stat == nil && fault.Is(fault.GrantWithoutNode) {
		return nil
	}
	if stat == nil {
		return errPlaceLost
	}
	if !p.isOwn(stat) {
		return errPlaceTaken
	}
	p.own = stat
	return nil
}

// isOwn reports whether what stands at our node's name is the node that we made. One
// that was let in under another (share.go) has a name that nobody else can have.
func (p *Place) isOwn(stat *zk.Stat) bool {
	return stat.EphemeralOwner == p.life.ID() && (p.own == nil || stat.Czxid == p.own.Czxid)
}

// readRecord reads the directory's data. Without the directory, or in one made
// anew, there is no place.
func (p *Place) readRecord(ctx context.Context) error {
	data, stat, err := p.life.Get(ctx, p.q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return errPlaceLost
	}
	if err != nil {
		return err
	}
	return p.takeRecord(data, stat)
}

func (p *Place) takeRecord(data []byte, stat *zk.Stat) error {
	if stat.Czxid != p.czxid {
		return errPlaceLost
	}
	r, err := p.q.checkRecord(data)
	if err != nil {
		return err
	}
	if err := p.q.agree(r, stat.Czxid, p.bid.Slots); err != nil {
		return err
	}
	_, p.ours = parseRecord(data)
	p.record, p.written = r.in(stat.Czxid), stat
	p.unsure = r.Dir != stat.Czxid
	p.record.Recipe = p.q.recipe.Name
	p.q.note(stat)
	return nil
}

// leave removes the node, in the background, until that is certain. One that has
// announced that it holds leaves as if it had, so that it is not taken for a
// holder that died. Then done is called, which may be nil.
func (p *Place) leave(done func()) {
	if p.telling == nil {
		p.remove(nil, done)
		return
	}
	go func() { // ends with the answer or the life
		<-p.telling
		if p.announced {
			p.remove(p.releaseOps(nobody, 0), done)
		} else {
			p.remove(nil, done)
		}
	}()
}

func (p *Place) remove(with []any, done func()) {
	remove := func(with []any, done func(error)) { p.life.Remove(p.path(), with, done) }
	if p.held != nil {
		remove = p.held.GiveUp
	}
	remove(with, func(err error) {
		if done != nil {
			defer done()
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			p.q.settings.Logger.Warn("a contender's node can't be removed before its session ends", "node", p.path(), "error", err)
		}
	})
}
