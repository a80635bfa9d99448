package group

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/follow"
	"github.com/lockkeeper/lockkeeper/recipes/internal/member"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Member is one of the group, as it can be seen from outside.
type Member struct {
	ID    string // of its node: unique, and never used again
	Owner string // as given by recipes.Owner
	Data  []byte // nil if empty
	Token recipes.Token
	Since time.Time // when it joined, by the server's clock
	Mine  bool      // it belongs to the session that was asked
}

// Members yields who is a member now, in the order in which they joined, at once,
// and then each change, of the members or of their data. An empty group is an
// element without members. It looks when the reader asks for the next element: a
// slow reader skips to the latest, and changes that are close together may be seen
// as one. It goes on over a lost session, with the next one; any other error
// (recipes.ErrConflict, ErrPermission, ErrSessionClosed, inside a *recipes.Error)
// is the last element. It ends when ctx ends, without an element for that. What is
// yielded is the reader's to keep.
//
// It shows what the server has to which we are connected: a member whose process
// died is shown until its session expires, and a member that is cut off knows
// before that that it is none any more.
//
// The first element takes one read for each member, and leaves a watch for each; a
// member that comes or goes costs every reader's session one list of all names,
// and one read if it came; a change of data, one read. Readers in one session share
// these. (The server tells of one that went before it tells of the list: a reader that
// is fast enough to look in between asks for it once, in vain.) Members watch nobody.
func (g *Group) Members(ctx context.Context) iter.Seq2[[]Member, error] {
	changes := follow.Changes(ctx, g.dir.Sess, "members", g.dir.Path, g.look, same)
	return func(yield func([]Member, error) bool) {
		for m, err := range changes {
			if !yield(slices.Clone(m), err) {
				return
			}
		}
	}
}

func (g *Group) look(ctx context.Context, life *session.Life) ([]Member, []<-chan struct{}, error) {
	dir, err := life.Watch(ctx, g.dir.Path)
	if errors.Is(err, zk.ErrNoNode) {
		there, err := life.WatchPresence(ctx, g.dir.Path)
		if err != nil {
			return nil, nil, err
		}
		if there.Stat == nil {
			return nil, []<-chan struct{}{there.Fired}, nil
		}
		return g.look(ctx, life) // it was made just now
	}
	if err != nil {
		return nil, nil, err
	}
	fired := []<-chan struct{}{dir.Fired}
	if len(dir.Data) > 0 {
		if _, err := g.dir.Check(dir.Data, dir.Stat.Czxid); err != nil {
			return nil, nil, err
		}
	}
	list, err := life.WatchChildren(ctx, g.dir.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return g.look(ctx, life) // it was removed just now
	}
	if err != nil {
		return nil, nil, err
	}
	if !fault.Is(fault.OldMembers) {
		fired = append(fired, list.Fired)
	}
	names := slices.DeleteFunc(slices.Clone(list.Names), func(name string) bool {
		_, ok := member.Sequence(name)
		return !ok
	})
	slices.SortFunc(names, func(a, b string) int {
		x, _ := member.Sequence(a)
		y, _ := member.Sequence(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	nodes, err := g.read(ctx, life, names)
	if err != nil {
		return nil, nil, err
	}
	members := make([]Member, 0, len(names))
	for i, n := range nodes {
		if n == nil {
			continue // gone since: the list has changed
		}
		t := member.ParseTicket(n.Data)
		members = append(members, Member{
			ID: names[i], Owner: t.Owner, Data: t.Value, Token: recipes.Token(n.Stat.Czxid),
			Since: time.UnixMilli(n.Stat.Ctime), Mine: n.Stat.EphemeralOwner == life.ID(),
		})
		fired = append(fired, n.Fired)
	}
	return members, fired, nil
}

// read watches the members' nodes; nil for those that are gone.
func (g *Group) read(ctx context.Context, life *session.Life, names []string) ([]*session.Watch, error) {
	nodes := make([]*session.Watch, len(names))
	errs := make([]error, len(names))
	slots := make(chan struct{}, 64) // reads in flight
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			nodes[i], errs[i] = life.Watch(ctx, g.dir.Path+"/"+name)
			if errors.Is(errs[i], zk.ErrNoNode) {
				nodes[i], errs[i] = nil, nil
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func same(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(a, b Member) bool {
		return a.ID == b.ID && a.Token == b.Token && bytes.Equal(a.Data, b.Data)
	})
}
