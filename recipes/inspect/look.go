package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// An eye reads nodes, and watches what it reads if it is to. Watches come first and
// the contenders after them, so that nothing is missed.
type eye struct {
	life    *session.Life
	watch   bool
	changed []<-chan struct{}
}

func (e *eye) saw(w *session.Watch, err error) (*session.Watch, error) {
	if err == nil && e.watch {
		e.changed = append(e.changed, w.Fired)
	}
	return w, err
}

func (e *eye) data(ctx context.Context, path string) (*session.Watch, error) {
	if e.watch {
		return e.saw(e.life.Watch(ctx, path))
	}
	data, stat, err := e.life.Get(ctx, path)
	return &session.Watch{Data: data, Stat: stat}, err
}

func (e *eye) children(ctx context.Context, path string) ([]string, error) {
	if e.watch {
		w, err := e.saw(e.life.WatchChildren(ctx, path))
		if err != nil {
			return nil, err
		}
		return w.Names, nil
	}
	names, _, err := e.life.Children(ctx, path)
	return names, err
}

// presence reports whether a node is there. Nothing is watched where it is.
func (e *eye) presence(ctx context.Context, path string) (bool, error) {
	stat, err := e.life.Exists(ctx, path)
	if err != nil || stat != nil || !e.watch {
		return stat != nil, err
	}
	w, err := e.life.WatchPresence(ctx, path)
	if err != nil || w.Stat != nil {
		return err == nil, err
	}
	e.saw(w, nil)
	return false, nil
}

// look sees who is in line.
func (o *Observer) look(ctx context.Context, e *eye) (Queue, []<-chan struct{}, error) {
	q := Queue{Path: o.path}
	what, err := o.identify(ctx, e)
	if err != nil {
		return q, nil, err
	}
	q.Recipe, q.Size = what.Recipe, what.Size
	if what.Recipe == "" || what.Recipe == Mutex {
		flows, err := o.flows(ctx, e)
		if err != nil {
			return q, nil, err
		}
		if flows {
			q.Recipe = Fair
		}
	}
	if q.Recipe == "" { // whoever has come since is of a kind that we don't know yet
		q.fill(nil, o.now(nil))
		return q, e.changed, nil
	}
	contenders, err := o.contenders(what)
	if err != nil {
		return q, nil, err
	}
	seen, err := contenders(ctx)
	if inner := (*recipes.Error)(nil); errors.As(err, &inner) {
		err = inner.Reason // the operation is ours
	}
	if err != nil {
		return q, nil, err
	}
	q.fill(seen, o.now(seen))
	return q, e.changed, nil
}

// identify finds out what kind of lock the path is.
func (o *Observer) identify(ctx context.Context, e *eye) (queue.What, error) {
	for {
		node, err := e.data(ctx, o.path)
		var names []string
		if err == nil {
			names, err = e.children(ctx, o.path)
		}
		if errors.Is(err, zk.ErrNoNode) {
			there, err := e.presence(ctx, o.path)
			if there {
				continue // made just now
			}
			return queue.What{}, err
		}
		if err != nil {
			return queue.What{}, err
		}
		what, err := queue.Identify(node.Data, node.Stat, names)
		if err == nil {
			o.remember(what.Recipe)
			return what, nil
		}
		if last := o.remember(""); last != "" && errors.Is(err, queue.ErrNothingSaid) {
			return queue.What{Recipe: last}, nil // they have gone
		}
		return queue.What{}, fmt.Errorf("%w: %w", ErrNoLock, err)
	}
}

// remember takes down a recipe that was seen, and returns the one that was seen last.
func (o *Observer) remember(recipe string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if recipe != "" && recipe != Semaphore { // whose size must be there
		o.last = recipe
	}
	return o.last
}

// flows reports whether the lock has flows, and watches who waits before their gates.
func (o *Observer) flows(ctx context.Context, e *eye) (bool, error) {
	root := queue.FlowsPath(o.path)
	for {
		nodes, err := e.children(ctx, root)
		if errors.Is(err, zk.ErrNoNode) {
			there, err := e.presence(ctx, root)
			if there {
				continue
			}
			return false, err
		}
		if err != nil {
			return false, err
		}
		for _, node := range nodes {
			if err := e.gate(ctx, root+"/"+node, queue.GatePath(o.path, node)); err != nil {
				return false, err
			}
		}
		return len(nodes) > 0, nil
	}
}

// gate watches who waits before one flow's gate. Where there is no queue, the flow's
// own node is watched for it to come, which leaves nothing behind.
func (e *eye) gate(ctx context.Context, flow, line string) error {
	if !e.watch {
		return nil
	}
	for {
		_, err := e.children(ctx, line)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		names, err := e.children(ctx, flow)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // the flow has gone
		}
		if err != nil {
			return err
		}
		if !has(names, flow, line) {
			return nil
		}
	}
}

// has reports whether a node is among the names of those below another.
func has(names []string, above, path string) bool {
	for _, name := range names {
		if above+"/"+name == path {
			return true
		}
	}
	return false
}

// contenders returns how those in line are listed.
func (o *Observer) contenders(what queue.What) (func(context.Context) ([]recipes.Contender, error), error) {
	switch what.Recipe {
	case RWLock:
		l, err := rwlock.New(o.sess, o.path)
		return l.Contenders, err
	case Semaphore:
		s, err := semaphore.New(o.sess, o.path, what.Size)
		return s.Contenders, err
	case Election:
		e, err := election.New(o.sess, o.path)
		return e.Contenders, err
	}
	l, err := fair.New(o.sess, o.path)
	return l.Contenders, err
}
