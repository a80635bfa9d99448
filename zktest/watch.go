package zktest

import "maps"

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

// watchSet says who watches which path. A watch belongs to a connection.
type watchSet map[string]map[*conn]struct{}

func (w watchSet) add(path string, c *conn) {
	if w[path] == nil {
		w[path] = map[*conn]struct{}{}
	}
	w[path][c] = struct{}{}
}

// take removes a watch and reports whether it was there.
func (w watchSet) take(path string, c *conn) bool {
	if _, ok := w[path][c]; !ok {
		return false
	}
	delete(w[path], c)
	if len(w[path]) == 0 {
		delete(w, path)
	}
	return true
}

// watches holds the one-shot watches of all connections. A watch on a missing
// node (exists) is a data watch that waits for its creation.
type watches struct {
	data, child watchSet
}

func newWatches() watches {
	return watches{data: watchSet{}, child: watchSet{}}
}

func (w watches) count(c *conn) int {
	n := 0
	for _, set := range []watchSet{w.data, w.child} {
		for _, conns := range set {
			if c == nil {
				n += len(conns)
			} else if _, ok := conns[c]; ok {
				n++
			}
		}
	}
	return n
}

// drop forgets everything that a connection watches.
func (w watches) drop(c *conn) {
	for _, set := range []watchSet{w.data, w.child} {
		for path := range set {
			set.take(path, c)
		}
	}
}

// listeners returns the connections that a change could concern.
func (w watches) listeners(ch change) map[*conn]struct{} {
	all := maps.Clone(w.data[ch.path])
	if all == nil {
		all = map[*conn]struct{}{}
	}
	if ch.kind != changed {
		parent, _ := split(ch.path)
		maps.Copy(all, w.child[ch.path])
		maps.Copy(all, w.child[parent])
	}
	return all
}

// notify tells one connection of one change, if it watches for it. A connection
// that watches both the data and the children of a deleted node hears of the
// deletion once, and then, if it watches the parent's children, of that.
func (w watches) notify(c *conn, ch change) {
	hit := w.data.take(ch.path, c)
	if ch.kind == deleted {
		hit = w.child.take(ch.path, c) || hit
	}
	if hit {
		c.event(ch.kind, ch.path)
	}
	if ch.kind == changed {
		return
	}
	if parent, _ := split(ch.path); w.child.take(parent, c) {
		c.event(childrenChanged, parent)
	}
}
