package zktest

// changeKind is what a step of a txn did to a node. The numbers are those of
// the events on the wire.
type changeKind int32

const (
	created changeKind = iota + 1
	deleted
	changed
	childrenChanged // never a step; only told to those who watch the children
)

type change struct {
	kind changeKind
	path string
}

// watchKey is what can be watched: a node's data, which includes its coming and
// going, or the list of its children.
type watchKey struct {
	path  string
	child bool
}

func onData(path string) watchKey     { return watchKey{path, false} }
func onChildren(path string) watchKey { return watchKey{path, true} }

// watches holds the one-shot watches of all connections, by what is watched and
// by who watches. A watch belongs to a connection.
type watches struct {
	on map[watchKey]map[*conn]struct{}
	of map[*conn]map[watchKey]struct{}
}

func newWatches() watches {
	return watches{on: map[watchKey]map[*conn]struct{}{}, of: map[*conn]map[watchKey]struct{}{}}
}

// add sets a watch; setting it twice is setting it once.
func (w watches) add(c *conn, key watchKey) {
	insert(w.on, key, c)
	insert(w.of, c, key)
}

// take removes a watch and reports whether it was there.
func (w watches) take(c *conn, key watchKey) bool {
	if _, ok := w.on[key][c]; !ok {
		return false
	}
	remove(w.on, key, c)
	remove(w.of, c, key)
	return true
}

func insert[K, V comparable](m map[K]map[V]struct{}, k K, v V) {
	if m[k] == nil {
		m[k] = map[V]struct{}{}
	}
	m[k][v] = struct{}{}
}

func remove[K, V comparable](m map[K]map[V]struct{}, k K, v V) {
	delete(m[k], v)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

func (w watches) count() int {
	n := 0
	for _, keys := range w.of {
		n += len(keys)
	}
	return n
}

// drop forgets everything that a connection watches.
func (w watches) drop(c *conn) {
	for key := range w.of[c] {
		w.take(c, key)
	}
}

// keys lists what a change concerns.
func (ch change) keys() []watchKey {
	if ch.kind == changed {
		return []watchKey{onData(ch.path)}
	}
	parent, _ := split(ch.path)
	return []watchKey{onData(ch.path), onChildren(ch.path), onChildren(parent)}
}

// listeners returns the connections that a change could concern.
func (w watches) listeners(ch change) map[*conn]struct{} {
	all := map[*conn]struct{}{}
	for _, key := range ch.keys() {
		for c := range w.on[key] {
			all[c] = struct{}{}
		}
	}
	return all
}

// notify tells one connection of one change, if it watches for it. A connection
// that watches both the data and the children of a deleted node hears of the
// deletion once, and then, if it watches the parent's children, of that.
func (w watches) notify(c *conn, ch change) {
	hit := w.take(c, onData(ch.path))
	if ch.kind == deleted {
		hit = w.take(c, onChildren(ch.path)) || hit
	}
	if hit {
		c.event(ch.kind, ch.path)
	}
	if ch.kind == changed {
		return
	}
	if parent, _ := split(ch.path); w.take(c, onChildren(parent)) {
		c.event(childrenChanged, parent)
	}
}
