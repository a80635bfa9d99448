package session

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"
)

// A Watch is a node as it was when the watch was set. All who watch one path of
// one life share one watch on the server, and one that nobody waits for any more
// costs nothing: it can't be taken back, but it is set at most once a path. So what
// doesn't make it fire may have changed long before the call: that of
// [Life.Watch] says nothing of children, neither does its Stat.
type Watch struct {
	Data  []byte   // from [Life.Watch]
	Names []string // from [Life.WatchChildren]: those below the node, in no order
	Stat  *zk.Stat // nil from [Life.WatchPresence] where there is no node
	// Fired is closed when the node has changed or gone, or when that can't be
	// said any longer because the connection was lost: look again. It says
	// nothing about what happened.
	Fired <-chan struct{}

	a *armament
}

// Changed reports, once Fired is closed, whether the server has told of a change;
// if not, the connection was lost.
func (w *Watch) Changed() bool { return w.a.heard }

// Watch reads a node and watches its data. A missing node is an [Error] with
// reason zk.ErrNoNode, and leaves no watch behind.
func (l *Life) Watch(ctx context.Context, path string) (*Watch, error) {
	return l.watch(ctx, watchKey{l.Full(path), watchData})
}

// WatchChildren lists the names below a node and watches for names to come and
// go. A missing node is an [Error] with reason zk.ErrNoNode, and leaves no watch
// behind.
func (l *Life) WatchChildren(ctx context.Context, path string) (*Watch, error) {
	return l.watch(ctx, watchKey{l.Full(path), watchChildren})
}

// WatchPresence reads a node's stat, which is nil where there is no such node, and
// watches for it to come, to change or to go. Other than Watch it leaves a watch
// behind where the node never comes, so it is for the few paths for which that is
// waited for.
func (l *Life) WatchPresence(ctx context.Context, path string) (*Watch, error) {
	return l.watch(ctx, watchKey{l.Full(path), watchPresence})
}

func (l *Life) watch(ctx context.Context, key watchKey) (*Watch, error) {
	fail := func(reason error) (*Watch, error) {
		return nil, &Error{Op: "watch", Path: l.cut(key.path), Reason: reason}
	}
	for older := true; ; older = false {
		if ctx.Err() != nil {
			return fail(context.Cause(ctx))
		}
		if err := l.Err(); err != nil { // a watch that stands might never fire now
			return fail(err)
		}
		a, mine := l.watches.arming(key)
		if mine && !l.spawn(func() { l.arm(a) }) {
			l.watches.settle(a, Watch{}, l.Err())
		}
		select {
		case <-a.settled:
		default:
			select {
			case <-a.settled:
			case <-ctx.Done():
				return fail(context.Cause(ctx))
			case <-l.ctx.Done():
				return fail(l.Err())
			}
		}
		if ctx.Err() != nil {
			return fail(context.Cause(ctx))
		}
		if !mine && older && (a.err != nil || isClosed(a.fired)) {
			continue // somebody else's question may be older than ours; the next one is not
		}
		if a.err != nil {
			return nil, a.err
		}
		w := a.seen
		w.Fired, w.a = a.fired, a
		return &w, nil
	}
}

// arm reads what is to be watched. The request of the client asks for no watch;
// the wire makes it do so, and the event comes to watchTable.fire. If the client
// knew of the watches, it would set them anew on a new connection, those too that
// were set on it just before, with a zxid that is being written meanwhile.
func (l *Life) arm(a *armament) {
	seen, err := repeat(l.ctx, l, "watch", l.cut(a.path), func(c *zk.Conn) (w Watch, err error) {
		switch a.kind {
		case watchChildren:
			w.Names, w.Stat, err = c.Children(a.path)
		case watchPresence:
			var there bool
			if there, w.Stat, err = c.Exists(a.path); !there {
				w.Stat = nil
			}
		default:
			w.Data, w.Stat, err = c.Get(a.path)
		}
		return w, err
	})
	l.watches.settle(a, seen, err)
}

// A watchKey says what is watched. There is at most one watch for each.
type watchKey struct {
	path string // with the chroot
	kind watchKind
}

type watchKind int

const (
	watchData watchKind = iota
	watchChildren
	watchPresence
)

// A watchTable has the watches of a life.
type watchTable struct {
	mu   sync.Mutex
	keys map[watchKey]*armament
}

// An armament is one watch on the server, being set or set, until it fires.
type armament struct {
	watchKey
	settled chan struct{} // closed when it is set, or could not be
	fired   chan struct{} // closed when it fires

	heard bool // there was an event; read after fired

	seen Watch // these are read after settled
	err  error
}

func newWatchTable() *watchTable { return &watchTable{keys: make(map[watchKey]*armament)} }

// arming returns the watch of key; mine says that it is new and that the caller
// has to set it.
func (t *watchTable) arming(key watchKey) (a *armament, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.keys[key]; a != nil {
		return a, false
	}
	a = &armament{watchKey: key, settled: make(chan struct{}), fired: make(chan struct{})}
	t.keys[key] = a
	return a, true
}

func (t *watchTable) settle(a *armament, seen Watch, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.seen, a.err = seen, err
	if err != nil && t.keys[a.watchKey] == a {
		delete(t.keys, a.watchKey)
	}
	close(a.settled)
}

// wants reports whether a watch is being set.
func (t *watchTable) wants(key watchKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.keys[key]
	return a != nil && !isClosed(a.settled)
}

// fire is called for each event, and for each watch that was lost with its
// connection, by the goroutine that reads the connection. It can come before the
// answer that set the watch has reached settle. heard says that it is an event.
func (t *watchTable) fire(key watchKey, heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.keys[key]; a != nil {
		delete(t.keys, key)
		a.heard = heard
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
