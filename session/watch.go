package session

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"
)

// A Watch is a node as it was when the watch was set. All who watch one path of
// one life share one watch on the server, and one that nobody waits for any more
// costs nothing: it can't be taken back, but it is set at most once a path.
type Watch struct {
	Data []byte
	Stat *zk.Stat
	// Fired is closed when the node has changed or gone, or when that can't be
	// said any longer because the connection was lost: look again. It says
	// nothing about what happened.
	Fired <-chan struct{}
}

// Watch reads a node and watches it. A missing node is an [Error] with reason
// zk.ErrNoNode, and leaves no watch behind.
func (l *Life) Watch(ctx context.Context, path string) (*Watch, error) {
	for {
		if ctx.Err() != nil {
			return nil, &Error{Op: "watch", Path: path, Reason: context.Cause(ctx)}
		}
		if err := l.Err(); err != nil { // a watch that stands might never fire now
			return nil, &Error{Op: "watch", Path: path, Reason: err}
		}
		a, mine := l.watches.arming(l.Full(path))
		if mine && !l.spawn(func() { l.arm(a, path) }) {
			l.watches.settle(a, nil, &Error{Op: "watch", Path: path, Reason: l.Err()})
		}
		select {
		case <-a.settled:
		default:
			select {
			case <-a.settled:
			case <-ctx.Done():
				return nil, &Error{Op: "watch", Path: path, Reason: context.Cause(ctx)}
			case <-l.ctx.Done():
				return nil, &Error{Op: "watch", Path: path, Reason: l.Err()}
			}
		}
		if ctx.Err() != nil {
			return nil, &Error{Op: "watch", Path: path, Reason: context.Cause(ctx)}
		}
		if !mine && (a.err != nil || isClosed(a.fired)) {
			continue // somebody else's question may be older than ours
		}
		if a.err != nil {
			return nil, a.err
		}
		return &Watch{Data: a.data, Stat: a.stat, Fired: a.fired}, nil
	}
}

func (l *Life) arm(a *armament, path string) {
	type node struct {
		data []byte
		stat *zk.Stat
	}
	n, err := repeat(l.ctx, l, "watch", path, func(c *zk.Conn) (node, error) {
		// The wire asks for the watch, and the event comes to watchTable.fire. The
		// client knows nothing of it: on a new connection it would set anew the
		// watches that were set on it just before, with a zxid that is being written.
		data, stat, err := c.Get(a.path)
		return node{data, stat}, err
	})
	if err != nil {
		l.watches.settle(a, nil, err)
		return
	}
	a.data = n.data
	l.watches.settle(a, n.stat, nil)
}

// A watchTable has the watches of a life, by path.
type watchTable struct {
	mu    sync.Mutex
	paths map[string]*armament
}

// An armament is one watch on the server, being set or set, until it fires.
type armament struct {
	path    string
	settled chan struct{} // closed when it is set, or could not be
	fired   chan struct{} // closed when it fires

	data []byte // these three are read after settled
	stat *zk.Stat
	err  error
}

func newWatchTable() *watchTable { return &watchTable{paths: make(map[string]*armament)} }

// arming returns the watch on path; mine says that it is new and that the caller
// has to set it.
func (t *watchTable) arming(path string) (a *armament, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.paths[path]; a != nil {
		return a, false
	}
	a = &armament{path: path, settled: make(chan struct{}), fired: make(chan struct{})}
	t.paths[path] = a
	return a, true
}

func (t *watchTable) settle(a *armament, stat *zk.Stat, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.stat, a.err = stat, err
	if err != nil && t.paths[a.path] == a {
		delete(t.paths, a.path)
	}
	close(a.settled)
}

// wants reports whether a watch on path is being set.
func (t *watchTable) wants(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.paths[path]
	return a != nil && !isClosed(a.settled)
}

// fire is called with each event, by the goroutine that reads the connection. An
// event can come before the answer that set the watch has reached settle.
func (t *watchTable) fire(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.paths[path]; a != nil {
		delete(t.paths, path)
		close(a.fired)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
