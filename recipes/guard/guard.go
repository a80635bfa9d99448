// Package guard makes writes into ZooKeeper conditional on a grant, atomically:
// they are carried out if the lock is held at that very moment, and refused as a
// whole if it is not. No clock and no token is needed for that, and a holder that
// was stopped for an hour can do no harm.
//
//	_, err := guard.Multi(ctx, g, &zk.SetDataRequest{Path: "/orders/last", Data: d, Version: -1})
//
// It works by a check of the contender's node in the same transaction, by its name and
// the version of its data. Names of these nodes bear the stamp of their lock directory,
// so those of one that was removed don't come back in the next. A client that hasn't
// noticed yet that the directory was made anew may still make such a node, for a round
// trip; so the first guarded write of a grant changes the version, which is 0 in a new
// node, with a request of its own.
// For resources outside ZooKeeper, see package fence.
package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// held is what the holds of our ZooKeeper recipes can tell.
type held interface {
	Life() *session.Life
	Node() string
	Version(context.Context) (int32, error)
	Reread(context.Context) error
}

// Checks returns the operations to put first into a transaction of the caller's
// own, on a connection to the same ensemble without a chroot: one
// *zk.CheckVersionRequest for each lock of g. The transaction fails with
// zk.ErrNoNode or zk.ErrBadVersion if one of them is no longer held; also if a value
// was published since ([election.Term.Proclaim]), so take them anew for each
// transaction. The first time, it asks the ensemble, as long as ctx lasts. It fails
// with g's Err if the grant has ended, and with recipes.ErrInvalid for a grant that is
// not from ZooKeeper.
//
// [election.Term.Proclaim]: https://pkg.go.dev/github.com/lockkeeper/lockkeeper/recipes/election#Term.Proclaim
func Checks(ctx context.Context, g *recipes.Grant) ([]any, error) {
	life, nodes, err := look(g)
	if err != nil {
		return nil, err
	}
	checks, err := checksOf(ctx, g, nodes)
	for _, c := range checks {
		c := c.(*zk.CheckVersionRequest)
		c.Path = life.Full(c.Path)
	}
	return checks, err
}

// checksOf returns the checks, with paths below the chroot.
func checksOf(ctx context.Context, g *recipes.Grant, nodes []held) ([]any, error) {
	checks := make([]any, len(nodes))
	for i, n := range nodes {
		version, err := n.Version(ctx)
		if err != nil {
			return nil, because(ctx, g, err, errors.Is(err, zk.ErrNoNode))
		}
		checks[i] = &zk.CheckVersionRequest{Path: n.Node(), Version: version}
	}
	return checks, nil
}

// Multi carries out all ops or none, on the session of g, and only if g's locks
// are held at that moment. The ops are those of zk.Conn.Multi, with paths below
// the session's chroot; the results are those of ops. It waits for the answer as
// long as ctx and the session last. It takes one round trip, and one more the first
// time for a grant.
//
// Errors: what g.Err returns, if the lock was lost, and then nothing was written;
// the ZooKeeper error of the op that failed, and then nothing was written either;
// session.ErrOutcomeUnknown if the answer was lost or ctx ended first: whether it
// was written is not known; recipes.ErrInvalid if an op is none of zk.Conn.Multi's, or
// g is not from ZooKeeper, or has locks of several sessions: nothing was sent. Multi
// does not repeat a transaction by itself.
func Multi(ctx context.Context, g *recipes.Grant, ops ...any) ([]zk.MultiResponse, error) {
	life, nodes, err := look(g)
	if err != nil {
		return nil, err
	}
	if err := life.CheckOps(ops...); err != nil {
		return nil, &recipes.Error{Op: "multi", Path: g.Path(), Reason: queue.Both(recipes.ErrInvalid, err)}
	}
	for {
		checks, err := checksOf(ctx, g, nodes)
		if err != nil {
			return nil, err
		}
		res, err := life.Multi(ctx, append(checks, ops...)...)
		if err == nil {
			return res[len(nodes):], nil
		}
		changed, failed := check(res, nodes)
		if changed == nil {
			return nil, because(ctx, g, err, failed)
		}
		// Nothing was written. The version may have changed since we asked for it.
		if err := changed.Reread(ctx); err != nil {
			return nil, because(ctx, g, err, errors.Is(err, zk.ErrNoNode))
		}
	}
}

// check finds the check that failed: failed says that there is one, and changed is
// what it was about if the node is there, in another version.
func check(res []zk.MultiResponse, nodes []held) (changed held, failed bool) {
	for i := range min(len(nodes), len(res)) {
		switch {
		case errors.Is(res[i].Error, zk.ErrNoNode):
			return nil, true
		case errors.Is(res[i].Error, zk.ErrBadVersion):
			return nodes[i], true
		}
	}
	return nil, false
}

// because says why a guarded write was not made; gone says that a lock's node was not
// there.
func because(ctx context.Context, g *recipes.Grant, err error, gone bool) error {
	if err := g.Err(); err != nil {
		return err
	}
	if gone {
		if err := g.Verify(ctx); err != nil { // this revokes it
			return err
		}
		return &recipes.Error{Op: "multi", Path: g.Path(), Reason: recipes.ErrNodeDeleted}
	}
	var se *session.Error
	if errors.As(err, &se) {
		return &recipes.Error{Op: "multi", Path: g.Path(), Reason: se.Reason, LastErr: se.LastErr}
	}
	return &recipes.Error{Op: "multi", Path: g.Path(), Reason: err}
}

// look returns the session and the nodes behind a live grant.
func look(g *recipes.Grant) (*session.Life, []held, error) {
	if g == nil {
		return nil, nil, fmt.Errorf("lockkeeper: guard: %w: the grant is nil", recipes.ErrInvalid)
	}
	if err := g.Err(); err != nil {
		return nil, nil, err
	}
	var life *session.Life
	var nodes []held
	for _, p := range g.Parts() {
		h, ok := recipes.HoldOf(p).(held)
		if !ok {
			return nil, nil, fmt.Errorf("lockkeeper: guard: %w: %s is not a lock on ZooKeeper", recipes.ErrInvalid, p.Path())
		}
		if life != nil && h.Life() != life {
			return nil, nil, fmt.Errorf("lockkeeper: guard: %w: the locks of %s are held by different sessions", recipes.ErrInvalid, g.Path())
		}
		life = h.Life()
		nodes = append(nodes, h)
	}
	return life, nodes, nil
}
