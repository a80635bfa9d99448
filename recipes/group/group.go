// Package group is membership on ZooKeeper: who is there now, with a few bytes
// each, such as an address; and each change, as an iterator.
//
//	g, err := group.New(sess, "/workers")
//	me, err := g.Join(ctx, []byte("10.0.0.7:8080"))
//	for members, err := range g.Members(ctx) { … }
//
// A membership is held as a lock is held, only that it excludes nobody: it ends by
// Leave, or by revocation, by our own clock, before the others see it gone because
// of a lost session.
package group

import (
	"context"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/member"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// MaxData is how many bytes a member may publish: what a server takes in one
// request by default (1 MiB, with the rest of the request), in the base 64 in
// which they are written.
const MaxData = queue.MaxValue

// A Group is the set of members at one path. It holds nothing itself: it may be
// shared by any number of goroutines, and it goes on working when the session
// behind it is lost and replaced.
type Group struct{ dir *member.Dir }

// New returns the group at path, which is taken below the session's chroot. The
// path's node is made by the first who joins, as a container, and vanishes by
// itself when it is no longer used. New sends nothing; a nil session, a bad path
// or option (recipes.Reentrant, LockDelay and FailOnLoss are for locks) is an error
// that matches recipes.ErrInvalid.
func New(s *session.Session, path string, opts ...recipes.Option) (*Group, error) {
	d, err := member.New(s, path, member.NewRecord("group", 0), opts)
	if err != nil {
		return nil, err
	}
	if d.Settings.FailOnLoss {
		return nil, fmt.Errorf("lockkeeper: group: %w: FailOnLoss is for those who wait", recipes.ErrInvalid)
	}
	return &Group{d}, nil
}

// A Membership is the time for which somebody is a member: a grant. Done is closed
// when it ends, and Err says why; Token names it, and rises, but fences nothing,
// since there are others. It does not come back by itself: who wants to be a member
// again joins again. All methods are safe for concurrent use.
type Membership struct {
	*recipes.Grant
	m *member.Member
}

// Join makes a member, with its data (at most MaxData bytes). It does not wait for
// anybody: ctx bounds what the ensemble takes to answer, and not the membership. A
// Join that fails leaves nothing behind. Each call is a member of its own.
//
// It takes three round trips, two of them committed by the quorum. Errors, inside a
// *recipes.Error: context.Cause(ctx); recipes.ErrInvalid (the data are too large:
// nothing was sent), ErrConflict, ErrPermission, ErrExhausted, ErrSessionClosed.
func (g *Group) Join(ctx context.Context, data []byte) (*Membership, error) {
	const op = "join"
	if err := queue.CheckValue(data); err != nil {
		return nil, queue.Fail(op, g.dir.Path, err)
	}
	if ctx.Err() != nil {
		return nil, queue.Fail(op, g.dir.Path, context.Cause(ctx))
	}
	data = append([]byte(nil), data...) // it may be sent again later
	for {
		life, err := g.dir.Sess.Life(ctx)
		if err != nil {
			return nil, queue.Fail(op, g.dir.Path, err)
		}
		m, err := g.dir.Join(ctx, life, data)
		if err == nil {
			return &Membership{m.Grant(), m}, nil
		}
		if !g.dir.Again(ctx, life, err) {
			return nil, queue.Fail(op, g.dir.Path, err)
		}
	}
}

// Leave ends the membership. It is the grant's Release.
func (m *Membership) Leave(ctx context.Context) error { return m.Release(ctx) }

// SetData changes what the member publishes. It is written only while this
// membership lasts, atomically with a check of that on the server. The errors are
// those of election.Term.Proclaim, and so is the order: one after the other, and
// one whose call failed because ctx ended never comes after a later one.
func (m *Membership) SetData(ctx context.Context, data []byte) error {
	const op = "setdata"
	if err := queue.CheckValue(data); err != nil {
		return queue.Fail(op, m.Path(), err)
	}
	return m.m.Data.WriteFor(ctx, m.Grant, op, m.m.Encode(data))
}

// Path returns the group's path.
func (g *Group) Path() string { return g.dir.Path }
