package zktest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

type node struct {
	data     []byte
	acl      []jute.ACL
	children map[string]struct{}

	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	creates             int32 // how many children were ever made: the next sequence number
	owner               int64
}

func (n *node) stat() jute.Stat {
	var owner int64
	if isSession(n.owner) {
		owner = n.owner // what marks a container isn't shown
	}
	return jute.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		// Every child that was made and is no longer there was deleted once.
		Cversion:       2*n.creates - int32(len(n.children)),
		EphemeralOwner: owner,
		DataLength:     int32(len(n.data)),
		NumChildren:    int32(len(n.children)),
	}
}

// tree holds the nodes by path. Its methods don't lock: the server's mutex
// guards it. Changes go through a txn.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	zxid       int64                         // of the last change
}

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}}
	t.nodes["/"] = &node{acl: openACL, children: map[string]struct{}{"zookeeper": {}}, data: []byte{}}
	t.nodes["/zookeeper"] = &node{acl: openACL, children: map[string]struct{}{"config": {}, "quota": {}}, data: []byte{}}
	t.nodes["/zookeeper/config"] = &node{acl: readACL, aversion: -1, data: []byte{}}
	t.nodes["/zookeeper/quota"] = &node{acl: openACL, data: []byte{}}
	return t
}

// get finds a node. The empty path is the root, as on the real server.
func (t *tree) get(path string) *node {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// clone copies everything that a later change could touch. Data and ACLs are
// replaced, never written to, so they are shared.
func (t *tree) clone() *tree {
	c := &tree{
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: make(map[int64]map[string]struct{}, len(t.ephemerals)),
		zxid:       t.zxid,
	}
	for path, n := range t.nodes {
		m := *n
		m.children = maps.Clone(n.children)
		c.nodes[path] = &m
	}
	for id, paths := range t.ephemerals {
		c.ephemerals[id] = maps.Clone(paths)
	}
	return c
}

func (t *tree) link(path string, n *node) {
	parent, name := split(path)
	p := t.nodes[parent]
	if p.children == nil {
		p.children = map[string]struct{}{}
	}
	p.children[name] = struct{}{}
	t.nodes[path] = n
	if isSession(n.owner) {
		if t.ephemerals[n.owner] == nil {
			t.ephemerals[n.owner] = map[string]struct{}{}
		}
		t.ephemerals[n.owner][path] = struct{}{}
	}
}

func (t *tree) unlink(path string) {
	parent, name := split(path)
	n := t.nodes[path]
	delete(t.nodes[parent].children, name)
	delete(t.nodes, path)
	if isSession(n.owner) {
		delete(t.ephemerals[n.owner], path)
		if len(t.ephemerals[n.owner]) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// ephemeralsOf returns the paths that a session owns, sorted.
func (t *tree) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// childrenOf returns the names of a node's children in the order in which a
// real server lists them: that of its hash table. It is the same every time, and
// not sorted, so that a client that forgets to sort is found out.
func (t *tree) childrenOf(path string) []string {
	n := t.get(path)
	size := uint32(8)
	for int(size)*3/4 < len(n.children) {
		size *= 2
	}
	type entry struct {
		name   string
		bucket uint32
		czxid  int64 // in a bucket the oldest comes first
	}
	prefix := strings.TrimSuffix(path, "/") + "/"
	entries := make([]entry, 0, len(n.children))
	for name := range n.children {
		var h uint32
		for _, c := range utf16.Encode([]rune(name)) {
			h = 31*h + uint32(c)
		}
		h ^= h >> 16
		entries = append(entries, entry{name, h & (size - 1), t.nodes[prefix+name].czxid})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.czxid, b.czxid), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}
