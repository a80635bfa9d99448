// Package guard makes writes into ZooKeeper conditional on a grant, atomically:
// they are carried out if the lock is held at that very moment, and refused as a
// whole if it is not. No clock and no token is needed for that, and a holder that
// was stopped for an hour can do no harm.
//
//	_, err := guard.Multi(ctx, g, &zk.SetDataRequest{Path: "/orders/last", Data: d, Version: -1})
//
// It works by a version check of the contender's node in the same transaction.
// Names of these nodes bear the stamp of their lock directory, so those of one that
// was removed don't come back in the next. One gap is left: a client that hasn't
// noticed yet that the directory was made anew may queue with the old stamp, and for
// the round trip until it notices, its node has what may be the name of an old one.
// For resources outside ZooKeeper, see package fence.
package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// held is what the holds of our ZooKeeper recipes can tell.
type held interface {
	Life() *session.Life
	Node() string
}

// Checks returns the operations to put first into a transaction of the caller's
// own, on a connection to the same ensemble without a chroot: one
// *zk.CheckVersionRequest for each lock of g. The transaction fails with
// zk.ErrNoNode if one of them is no longer held. Checks asks nobody; it fails with
// g's Err if the grant has ended, and with recipes.ErrInvalid for a grant that is
// not from ZooKeeper.
func Checks(g *recipes.Grant) ([]any, error) {
	_, nodes, err := look(g)
	if err != nil {
		return nil, err
	}
	checks := make([]any, len(nodes))
	for i, n := range nodes {
		checks[i] = &zk.CheckVersionRequest{Path: n.Life().Full(n.Node()), Version: -1}
	}
	return checks, nil
}

// Multi carries out all ops or none, on the session of g, and only if g's locks
// are held at that moment. The ops are those of zk.Conn.Multi, with paths below
// the session's chroot; the results are those of ops. It waits for the answer as
// long as ctx and the session last.
//
// Errors: what g.Err returns, if the lock was lost, and then nothing was written;
// the ZooKeeper error of the op that failed, and then nothing was written either;
// session.ErrOutcomeUnknown if the answer was lost or ctx ended first: whether it
// was written is not known. Multi does not repeat a transaction by itself.
func Multi(ctx context.Context, g *recipes.Grant, ops ...any) ([]zk.MultiResponse, error) {
	life, nodes, err := look(g)
	if err != nil {
		return nil, err
	}
	all := make([]any, 0, len(nodes)+len(ops))
	for _, n := range nodes {
		all = append(all, &zk.CheckVersionRequest{Path: n.Node(), Version: -1})
	}
	res, err := life.Multi(ctx, append(all, ops...)...)
	if err == nil {
		return res[len(nodes):], nil
	}
	if err := g.Err(); err != nil {
		return nil, err
	}
	for i := range min(len(nodes), len(res)) {
		if errors.Is(res[i].Error, zk.ErrNoNode) {
			if err := g.Verify(ctx); err != nil { // this revokes it
				return nil, err
			}
			return nil, &recipes.Error{Op: "multi", Path: g.Path(), Reason: recipes.ErrNodeDeleted}
		}
	}
	var se *session.Error
	if errors.As(err, &se) {
		return nil, &recipes.Error{Op: "multi", Path: g.Path(), Reason: se.Reason, LastErr: se.LastErr}
	}
	return nil, &recipes.Error{Op: "multi", Path: g.Path(), Reason: err}
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
