package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A recipe that wants more than Bid takes the way to a grant in steps: Enter, Turn,
// Hold, and Grant. Until there is a grant, it can Leave at any step. A Place is
// for one goroutine at a time.

// Exclusive is the recipe of a lock that one contender holds at a time.
var Exclusive = Recipe{
	Name: "mutex",
	Keywords: []Keyword{
		Contender,
		{Text: "__lock__", Kind: "lock", Alone: true}, // kazoo's
	},
	Foreign: []Keyword{{Text: "__READ__"}, {Text: "__WRIT__"}, {Text: "__rlock__"}},
	Blocks:  func(other, self Node) bool { return true },
}

// Contender is the keyword of its contenders.
var Contender = Keyword{Text: "lock-", Kind: "lock", Alone: true}

const gateName = "gate"

// NewGate returns a queue in which contenders stand before they may enter another
// one. Its record has a weight, which is made with the directory and can be changed
// with SetWeight.
func NewGate(s *session.Session, path string, weight int, settings recipes.Settings) (*Queue, error) {
	gate := Exclusive
	gate.Name = gateName
	q, err := New(s, path, gate, settings)
	if err != nil {
		return nil, err
	}
	q.weight = weight
	return q, nil
}

// Under answers a contender of keyword k if ctx comes from a live grant of this
// lock: with a nested grant or an error. It returns nil, nil otherwise.
func (q *Queue) Under(ctx context.Context, k Keyword) (*recipes.Grant, error) {
	return q.under(ctx, k)
}

// Enter takes a place in the queue.
func (q *Queue) Enter(ctx context.Context, life *session.Life, b Bid) (*Place, error) {
	return q.enqueue(ctx, life, b)
}

// Turn waits until nobody is ahead any more.
func (p *Place) Turn(ctx context.Context) error { return p.waitTurn(ctx, false) }

// Seq returns the place's sequence number.
func (p *Place) Seq() int64 { return p.node.Seq }

// Name returns the name of its node, which never comes again.
func (p *Place) Name() string { return p.node.Name }

// Weight returns the weight of the queue, as it was last read; 0 if it has none.
func (p *Place) Weight() int { return p.record.Weight }

// SetWeight changes the weight of the queue. The operations in with are carried out
// in the same transaction, if the server does not refuse them.
func (p *Place) SetWeight(ctx context.Context, weight int, with ...any) error {
	set := func(r record) (record, bool) {
		due := r.Weight != weight
		r.Weight = weight
		return r, due
	}
	_, err := p.writeRecord(ctx, set, with...)
	if len(with) > 0 && (errors.Is(err, errPlaceLost) || errors.Is(err, zk.ErrNodeExists)) {
		_, err = p.writeRecord(ctx, set) // it may have been one of those
	}
	return err
}

// Look reads the queue's record again, and fails if the place is not there any more.
func (p *Place) Look(ctx context.Context) error { return p.look(ctx) }

// Checks are two operations that make a transaction fail: the first unless the place
// is still there, the second unless the queue's record is as it was last read.
func (p *Place) Checks() []any {
	return []any{
		&zk.CheckVersionRequest{Path: p.path(), Version: -1},
		&zk.CheckVersionRequest{Path: p.q.path, Version: p.written.Version},
	}
}

// ErrPlaceLost says so in an error for which Lost is true.
var ErrPlaceLost = errPlaceLost

// WatchOwn fails if the place is not there any more; the channel is closed when it
// is to be called again. A wait of some length does so, after GuardAfter.
func (p *Place) WatchOwn(ctx context.Context) (<-chan struct{}, error) {
	if err := p.watchOwn(ctx); err != nil {
		return nil, err
	}
	return p.guard.Fired, nil
}

// GuardAfter is how long a contender waits before it watches its own node.
const GuardAfter = guardAfter

// Leave gives the place up, as one that has not held: in the background, until that
// is certain, and then calls done. why is the error that ended a step, if one did:
// what another has put in the node's place is not ours to remove.
func (p *Place) Leave(why error, done func()) {
	if p.left || errors.Is(why, errPlaceTaken) {
		done()
		return
	}
	p.left = true
	p.leave(done)
}

// PassOn gives up a place whose turn has come, as a holder does: whoever is next
// knows that nobody before it is left.
func (p *Place) PassOn() {
	p.left = true
	p.remove(p.releaseOps(nobody, 0), nil)
}

// A Held is a place that holds, and has not handed out its grant yet.
type Held struct{ h *hold }

// Hold makes the lock this place's, whose turn has come. lost is called once if the
// lock is lost before the grant is handed out; gone says that nothing is left on the
// server to be removed.
func (p *Place) Hold(ctx context.Context, lost func(cause error, gone bool)) (*Held, error) {
	h, err := p.prepare(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return nil, placeLost(h.lost)
	}
	h.onLoss = lost
	return &Held{h}, nil
}

// Grant hands the grant out; it can be called once.
func (d *Held) Grant() (*recipes.Grant, error) {
	return d.h.grant(recipes.Token(d.h.p.own.Czxid))
}

// Leave gives up what was held and not handed out, as a holder does: in the
// background, until that is certain, and then it calls done.
func (d *Held) Leave(done func()) {
	p := d.h.p
	p.left = true
	p.remove(p.releaseOps(nobody, max(1, time.Since(d.h.since))), done)
}

// Lost reports whether err means that a place was lost, so that one may queue
// again: with its session, or by somebody who removed it.
func Lost(ctx context.Context, life *session.Life, err error) bool {
	if errors.Is(life.Err(), session.ErrClosed) {
		return false
	}
	return life.Err() != nil && ctx.Err() == nil || errors.Is(err, errPlaceLost)
}

// Waiting returns how many are ahead of a place, by a listing. One that is not in
// line any more is an error.
func (p *Place) Waiting(ctx context.Context) (int, error) {
	nodes, _, err := p.q.nodes(ctx, p.life)
	if err != nil {
		return 0, err
	}
	ahead, there := 0, false
	for _, n := range nodes {
		there = there || n.Name == p.node.Name
		if n.Seq < p.node.Seq {
			ahead++
		}
	}
	if !there {
		return 0, errPlaceLost
	}
	return ahead, nil
}

// Len returns how many stand in the queue, by one read. Children that are no
// contenders count, but for the keeper of the record.
func (q *Queue) Len(ctx context.Context, life *session.Life) (int, error) {
	o, err := q.Outlook(ctx, life)
	return o.Len, err
}

// Count returns how many of the names are those of contenders.
func (q *Queue) Count(names []string) (n int) {
	for _, name := range names {
		if _, ok := parse(name, q.recipe.Keywords); ok {
			n++
		}
	}
	return n
}

// An Outlook is what one sees of a queue who has not entered it.
type Outlook struct {
	Clock Clock
	Dir   int64 // czxid of the directory, for which the clock counts
	Len   int
	last  string // the node of the last in line, if it is one of ours
}

// Outlook reads the queue's record.
func (q *Queue) Outlook(ctx context.Context, life *session.Life) (Outlook, error) {
	data, stat, err := life.Get(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return Outlook{}, nil
	}
	if err != nil {
		return Outlook{}, err
	}
	r, err := q.checkRecord(data)
	if err != nil {
		return Outlook{}, err
	}
	r = r.in(stat.Czxid)
	n := int(stat.NumChildren)
	if r.Holder >= 0 {
		n = max(0, n-1) // the keeper of the record
	}
	alone, _ := q.recipe.alone()
	return Outlook{
		Clock: r.Clock,
		Dir:   stat.Czxid,
		Len:   n,
		last:  q.path + "/" + nameAt(prefix(stat.Czxid, alone.Text), nextSeq(stat)-1),
	}, nil
}

// WatchLast watches the one that was the last in line at that time. If it has gone
// since, or can't be told by its number, that is the last of those who are there;
// nil if nobody is.
func (q *Queue) WatchLast(ctx context.Context, life *session.Life, o Outlook) (*session.Watch, error) {
	w, err := life.Watch(ctx, o.last)
	for errors.Is(err, zk.ErrNoNode) {
		nodes, _, lerr := q.nodes(ctx, life)
		if lerr != nil || len(nodes) == 0 {
			return nil, lerr
		}
		last := nodes[0]
		for _, n := range nodes {
			if compare(n, last) > 0 {
				last = n
			}
		}
		w, err = life.Watch(ctx, q.path+"/"+last.Name)
	}
	return w, err
}
