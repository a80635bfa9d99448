package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Recipe is what makes one kind of lock different from another.
type Recipe struct {
	Name     string    // in the directory's record
	Keywords []Keyword // of the contenders that take part
	Foreign  []Keyword // of other recipes: their nodes are a conflict
	// Blocks says whether other, being ahead of self, is in its way.
	Blocks func(other, self Node) bool
	// Announces makes a holder say in the directory's record that it holds, with
	// one more committed request before it does: see Queue.Announced.
	Announces bool
}

// A Queue is one lock directory, seen by one recipe. It holds no lock: it is safe
// for concurrent use, and every Acquire is a contender of its own.
type Queue struct {
	sess     *session.Session
	path     string
	recipe   Recipe
	settings recipes.Settings

	weight int // that a directory which we make gets; see NewGate

	mu   sync.Mutex
	life *session.Life // of which dir was seen
	dir  directory
	size sizing
}

// New checks its arguments. Nothing is sent.
func New(s *session.Session, path string, recipe Recipe, settings recipes.Settings) (*Queue, error) {
	if s == nil {
		return nil, fmt.Errorf("lockkeeper: %s: %w: the session is nil", recipe.Name, recipes.ErrInvalid)
	}
	if err := CheckPath(path); err != nil {
		return nil, fmt.Errorf("lockkeeper: %s: %w", recipe.Name, err)
	}
	return &Queue{sess: s, path: path, recipe: recipe, settings: settings}, nil
}

// Path returns the lock directory.
func (q *Queue) Path() string { return q.path }

// Key names the lock in the order in which recipes.All takes locks. The path comes
// first: every process must sort alike, also those that were told of other servers of the
// same ensembles.
func (q *Queue) Key() string { return q.path + " " + q.sess.Realm() }

// Acquire waits for its turn as a contender of the given keyword, and returns the
// grant. With try it does not wait, but returns ErrBusy. If it fails, it leaves
// nothing behind.
func (q *Queue) Acquire(ctx context.Context, k Keyword, try bool) (*recipes.Grant, error) {
	op := "lock"
	if try {
		op = "trylock"
	}
	return q.Bid(ctx, Bid{Keyword: k, Op: op, Try: try})
}

// Bid is Acquire in full.
func (q *Queue) Bid(ctx context.Context, b Bid) (*recipes.Grant, error) {
	if ctx.Err() != nil {
		return nil, q.fail(b.Op, context.Cause(ctx))
	}
	if g, err := q.under(ctx, b.Keyword); g != nil || err != nil {
		return g, q.fail(b.Op, err)
	}
	return q.acquire(ctx, b)
}

func (q *Queue) acquire(ctx context.Context, b Bid) (*recipes.Grant, error) {
	op := b.Op
	for {
		life, err := q.sess.Life(ctx)
		if err != nil {
			return nil, q.fail(op, err)
		}
		g, err := q.contend(ctx, life, b)
		if err == nil {
			return g, nil
		}
		if errors.Is(err, errYielded) {
			continue
		}
		if !Lost(ctx, life, err) || q.settings.FailOnLoss {
			return nil, q.fail(op, err)
		}
		q.settings.Logger.Info("place in the queue lost, queueing again", "path", q.path, "cause", err)
	}
}

// contend is one contender's way from the create to the grant.
func (q *Queue) contend(ctx context.Context, life *session.Life, b Bid) (g *recipes.Grant, err error) {
	if b.Try {
		looksBusy := q.looksBusy
		if q.sized() {
			looksBusy = q.looksFull
		}
		if busy, err := looksBusy(ctx, life, b); busy || err != nil {
			return nil, cmp.Or(err, recipes.ErrBusy)
		}
	}
	p, err := q.enqueue(ctx, life, b)
	if err != nil {
		return nil, err
	}
	defer func() {
		if fault.Is(fault.CleanUpCancelled) && ctx.Err() != nil {
			return
		}
		if g == nil && !p.left && !errors.Is(err, errPlaceTaken) {
			p.leave(nil)
		}
	}()
	if err := p.waitTurn(ctx, b.Try); err != nil {
		return nil, err
	}
	if err := p.giveWay(ctx, b.Try); err != nil {
		return nil, err
	}
	if q.sized() {
		if err := p.waitRoom(ctx, b.Try); err != nil {
			return nil, err
		}
	}
	return p.take(ctx)
}

// looksBusy reports whether somebody is in line, without writing anything, and
// while the queue follows its normal course, without listing it.
func (q *Queue) looksBusy(ctx context.Context, life *session.Life, b Bid) (bool, error) {
	data, stat, err := life.Get(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := q.checkRecord(data)
	if err != nil {
		return false, err
	}
	q.note(stat)
	if stat.NumChildren == 0 {
		return false, nil
	}
	if !q.recipe.lists(stat.NumChildren) {
		alone, _ := q.recipe.alone()
		next := nameAt(prefix(stat.Czxid, alone.Text), r.in(stat.Czxid).Released+1)
		if holder, err := life.Exists(ctx, q.path+"/"+next); holder != nil || err != nil {
			return holder != nil, err
		}
	}
	nodes, _, err := q.nodes(ctx, life)
	last := Node{Kind: b.Keyword.Kind, Alone: b.Keyword.Alone, Seq: math.MaxInt64}
	return slices.ContainsFunc(nodes, func(n Node) bool { return q.recipe.Blocks(n, last) }), err
}
