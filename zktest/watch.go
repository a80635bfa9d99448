package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

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
	zxid int64

	// Who may not read a node isn't told what becomes of it.
	acl, parentACL []jute.ACL
}

// watchKey is what can be watched: a node's data, which includes its coming and
// going, or the list of its children.
type watchKey struct {
	path  string
	child bool
}

func onData(path string) watchKey     { return watchKey{path, false} }
func onChildren(path string) watchKey { return watchKey{path, true} }

// watchMode says how long a watch stands and what it covers. The numbers are
// those of addWatch on the wire; oneShot has none there.
type watchMode int32

const (
	persistent watchMode = iota
	recursive            // also for everything below; hears of no childrenChanged
	oneShot
)

// watches holds the watches of all connections, by what is watched and by who
// watches. A watch belongs to a connection. On one key it has one watch: the
// last that it set, so that a one-shot watch takes the place of a persistent one,
// as on real servers up to 3.8.0.
type watches struct {
	on        map[watchKey]map[*conn]watchMode
	of        map[*conn]map[watchKey]struct{}
	recursive map[*conn]int // how many recursive watches it has
}

func newWatches() watches {
	return watches{
		on:        map[watchKey]map[*conn]watchMode{},
		of:        map[*conn]map[watchKey]struct{}{},
		recursive: map[*conn]int{},
	}
}

// add sets a watch; setting it twice is setting it once.
func (w watches) add(c *conn, key watchKey, mode watchMode) {
	w.take(c, key)
	if w.on[key] == nil {
		w.on[key] = map[*conn]watchMode{}
	}
	w.on[key][c] = mode
	if w.of[c] == nil {
		w.of[c] = map[watchKey]struct{}{}
	}
	w.of[c][key] = struct{}{}
	if mode == recursive {
		w.recursive[c]++
	}
}

// addLasting sets a persistent or recursive watch, which is one on the data and
// one on the children.
func (w watches) addLasting(c *conn, path string, mode watchMode) {
	w.add(c, onData(path), mode)
	w.add(c, onChildren(path), mode)
}

// take removes a watch and reports whether it was there.
func (w watches) take(c *conn, key watchKey) bool {
	mode, ok := w.on[key][c]
	if !ok {
		return false
	}
	if mode == recursive {
		if w.recursive[c]--; w.recursive[c] == 0 {
			delete(w.recursive, c)
		}
	}
	if delete(w.on[key], c); len(w.on[key]) == 0 {
		delete(w.on, key)
	}
	if delete(w.of[c], key); len(w.of[c]) == 0 {
		delete(w.of, c)
	}
	return true
}

// drop forgets everything that a connection watches.
func (w watches) drop(c *conn) {
	for key := range w.of[c] {
		w.take(c, key)
	}
}

// countOf returns how many watches a connection has. One that lasts is one,
// though it is kept under two keys.
func (w watches) countOf(c *conn) int {
	n := 0
	for key := range w.of[c] {
		mode := w.on[key][c]
		other, both := w.on[watchKey{key.path, !key.child}][c]
		if key.child && mode != oneShot && both && other == mode {
			continue
		}
		n++
	}
	return n
}

func (w watches) count() int {
	n := 0
	for c := range w.of {
		n += w.countOf(c)
	}
	return n
}

// listeners returns the connections that a change could concern.
func (w watches) listeners(ch change) map[*conn]struct{} {
	all := map[*conn]struct{}{}
	hear := func(key watchKey) {
		for c := range w.on[key] {
			all[c] = struct{}{}
		}
	}
	hear(onData(ch.path))
	if ch.kind != changed {
		parent, _ := split(ch.path)
		hear(onChildren(ch.path))
		hear(onChildren(parent))
	}
	for c := range w.recursive {
		all[c] = struct{}{}
	}
	return all
}

// notify tells one connection of one change, if it watches for it; a one-shot
// watch is used up also if it may not be told, as on the real server. A connection
// that watches both the data and the children of a deleted node hears of the
// deletion once, and then, if it watches the parent's children, of that.
func (w watches) notify(c *conn, ch change) {
	hit := w.trigger(c, onData(ch.path), ch.kind)
	if ch.kind == deleted {
		hit = w.trigger(c, onChildren(ch.path), deleted) || hit
	}
	if hit && allowed(ch.acl, permRead, c.ids) {
		c.event(ch.kind, ch.path, ch.zxid)
	}
	if ch.kind == changed {
		return
	}
	parent, _ := split(ch.path)
	if w.trigger(c, onChildren(parent), childrenChanged) && allowed(ch.parentACL, permRead, c.ids) {
		c.event(childrenChanged, parent, ch.zxid)
	}
}

// trigger reports whether a connection watches a key or, recursively, something
// above it, and takes a one-shot watch away.
func (w watches) trigger(c *conn, key watchKey, kind changeKind) bool {
	hit := false
	switch mode, ok := w.on[key][c]; {
	case !ok:
	case mode == oneShot:
		hit = w.take(c, key)
	default:
		hit = mode == persistent || kind != childrenChanged
	}
	if kind == childrenChanged || w.recursive[c] == 0 {
		return hit
	}
	for path := key.path; path != "/" && !hit; {
		path, _ = split(path)
		mode, ok := w.on[watchKey{path, key.child}][c]
		hit = ok && mode == recursive
	}
	return hit
}
