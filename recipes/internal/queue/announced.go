package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Leader is a holder that announced itself.
type Leader struct {
	ID, Owner string
	Value     []byte
	Token     recipes.Token
	Since     time.Time // when it did so, by the server's clock
}

// Announced returns the holder that the directory's record names, or nil if there
// is none. It takes two reads, of the directory's data and of the holder's node,
// and lists nothing. With watch, one of the channels is closed as soon as that may
// have changed; waiting contenders watch neither of the two, except the next in
// line, who watches the holder's node.
func (q *Queue) Announced(ctx context.Context, life *session.Life, watch bool) (*Leader, []<-chan struct{}, error) {
	look := func(path string) (*session.Watch, error) {
		if watch {
			return life.Watch(ctx, path)
		}
		data, stat, err := life.Get(ctx, path)
		return &session.Watch{Data: data, Stat: stat}, err
	}
	dir, err := look(q.path)
	if errors.Is(err, zk.ErrNoNode) && watch {
		var there *session.Watch
		there, err = life.WatchPresence(ctx, q.path)
		if err == nil && there.Stat == nil {
			return nil, []<-chan struct{}{there.Fired}, nil
		}
		if err == nil { // it was made just now
			dir, err = look(q.path)
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, closedChannel(watch), nil
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := q.checkRecord(dir.Data)
	if err != nil {
		return nil, nil, err
	}
	r = r.in(dir.Stat.Czxid)
	fired := []<-chan struct{}{dir.Fired}
	if r.Leader < 0 {
		return nil, fired, nil
	}
	name := nameAt(prefix(dir.Stat.Czxid, q.recipe.Keywords[0].Text), r.Leader)
	node, err := look(q.path + "/" + name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, fired, nil // it died; its successor will write into the record
	}
	if err != nil {
		return nil, nil, err
	}
	t := parseTicket(node.Data)
	return &Leader{
		ID:    name,
		Owner: t.Owner,
		Value: t.Value,
		Token: recipes.Token(node.Stat.Czxid),
		Since: time.UnixMilli(dir.Stat.Mtime),
	}, append(fired, node.Fired), nil
}

// closedChannel says: look again at once.
func closedChannel(watch bool) []<-chan struct{} {
	if !watch {
		return nil
	}
	c := make(chan struct{})
	close(c)
	return []<-chan struct{}{c}
}
