package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
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

// enqueueTries bounds how often a directory may vanish between our making it and
// our use of it.
const enqueueTries = 16

// errMisplaced: the node is in a directory that was made anew since we learned of
// it, or the directory is gone again.
var errMisplaced = errors.New("the lock directory was removed meanwhile")

// enqueue makes the contender's node and reads what tells whether it is first.
func (q *Queue) enqueue(ctx context.Context, life *session.Life, b Bid) (*Place, error) {
	q.meet(life)
	for range enqueueTries {
		dir, err := q.directory(ctx, life, b.Slots)
		if err != nil {
			return nil, err
		}
		if dir.next >= seqLimit {
			if err := q.renew(ctx, life); err != nil {
				return nil, err
			}
			continue
		}
		p := &Place{q: q, life: life, prefix: prefix(dir.czxid, b.Keyword.Text), czxid: dir.czxid, bid: b, ticket: q.ticket(b)}
		node, err := life.CreateSequential(ctx, q.path+"/"+p.prefix, p.ticket.encode())
		if errors.Is(err, zk.ErrNoNode) {
			q.forget() // reaped, or removed by somebody
			continue
		}
		if errors.Is(err, zk.ErrNodeExists) {
			return nil, errWentBack
		}
		if err != nil {
			return nil, err
		}
		err = p.settle(ctx, node)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errPlaceTaken) {
			life.Remove(node.Path, nil, func(error) {})
		}
		if !errors.Is(err, errMisplaced) {
			return nil, err
		}
		q.forget()
	}
	return nil, fmt.Errorf("%w, %d times in a row", errMisplaced, enqueueTries)
}

var errWentBack = fmt.Errorf("%w: the counter has gone back", recipes.ErrExhausted)

// directory returns what is known of the lock directory, reading or making it if
// nothing is. n slots are going to be asked for.
func (q *Queue) directory(ctx context.Context, life *session.Life, n int) (directory, error) {
	for range enqueueTries {
		if dir := q.known(); dir.czxid != 0 && dir.next < seqLimit {
			return dir, nil
		}
		data, stat, err := life.Get(ctx, q.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := life.EnsureContainer(ctx, q.path, q.firstRecord().encode()); err != nil {
				return directory{}, err
			}
			continue
		case err != nil:
			return directory{}, err
		case stat.EphemeralOwner != 0 && stat.EphemeralOwner != containerOwner:
			return directory{}, fmt.Errorf("%w: it is an ephemeral node", recipes.ErrConflict)
		}
		r, err := q.checkRecord(data)
		if err != nil {
			return directory{}, err
		}
		if err := q.agree(r, stat.Czxid, n); err != nil {
			return directory{}, err
		}
		q.note(stat)
		if r.Recipe == "" {
			// Somebody else made it: make sure that no other recipe is at work there.
			if _, _, err := q.nodes(ctx, life); err != nil {
				return directory{}, err
			}
		}
		if q.sized() && r.Size == 0 {
			q.forget() // until it has a size
			if err := q.writeSize(ctx, life, stat); err != nil {
				return directory{}, err
			}
			continue
		}
		return q.known(), nil
	}
	return directory{}, fmt.Errorf("%w, %d times in a row", errMisplaced, enqueueTries)
}

// containerOwner is what a server shows as the owner of a container node.
const containerOwner = -1 << 63

// renew removes a directory whose counter is nearly used up, if it is empty and
// ours; a new one begins at zero. Tokens go on rising, and names are new.
func (q *Queue) renew(ctx context.Context, life *session.Life) error {
	data, stat, err := life.Get(ctx, q.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	q.forget()
	if err != nil {
		return nil
	}
	r, ours := parseRecord(data)
	ops := []any{&zk.DeleteRequest{Path: q.path, Version: stat.Version}}
	if ours && stat.NumChildren == 1 {
		kept := q.renewDelayed
		if q.sized() {
			kept = q.renewResized
		}
		if ops, err = kept(ctx, life, r, stat); err != nil {
			return err
		}
		stat.NumChildren = 0
	}
	if !ours || stat.NumChildren > 0 {
		return recipes.ErrExhausted
	}
	_, err = life.Multi(ctx, ops...)
	switch {
	case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
		return recipes.ErrExhausted
	case err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrOutcomeUnknown):
		return err
	}
	return nil
}

// settle takes in what came of the creation.
func (p *Place) settle(ctx context.Context, made *session.Created) error {
	node, good := parse(strings.TrimPrefix(made.Path, p.q.path+"/"), p.q.recipe.Keywords)
	if !good {
		return fmt.Errorf("the server named a contender %q", made.Path)
	}
	p.node, p.own = node, made.Stat
	err := p.takeRecord(made.Parent, made.ParentStat)
	switch {
	case errors.Is(err, errPlaceLost):
		return errMisplaced // removed under our hands: once more
	case err != nil:
		return err
	case node.Seq >= seqLimit:
		return recipes.ErrExhausted
	case p.record.Released >= node.Seq:
		// Later ones have come and gone: either the own node was removed, or the
		// counter has gone back, as some servers' does when the leader changes, and
		// nobody can tell who came first.
		if err := p.prove(ctx); errors.Is(err, errPlaceLost) {
			return fmt.Errorf("%w: %w", errMisplaced, err)
		} else if err != nil {
			return err
		}
		return errWentBack
	}
	return nil
}

// look reads the directory's record and the own node, side by side, and what the
// recipe wants to know besides.
func (p *Place) look(ctx context.Context) error {
	proof := make(chan error, 1)
	go func() { proof <- p.prove(ctx) }()
	if p.bid.Beside == nil {
		err := p.readRecord(ctx)
		return cmpErr(<-proof, err)
	}
	beside := make(chan error, 1)
	go func() { beside <- p.bid.Beside(ctx, p.life) }()
	err := p.readRecord(ctx)
	err = cmpErr(cmpErr(<-proof, err), <-beside)
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
