package zktest

import (
	"maps"
	"strings"

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

	serial int64  // the order in which nodes were made
	table  uint32 // size of the real server's table of the children
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

// owned are the ephemeral nodes of a session.
type owned struct {
	paths map[string]struct{}
	table uint32 // size of the real server's table of them
}

// tree holds the nodes by path. Its methods don't lock: the server's mutex
// guards it. Changes go through a txn.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]*owned // by session
	zxid       int64            // of the last change
	made       int64            // how many nodes were
}

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]*owned{}}
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
		ephemerals: make(map[int64]*owned, len(t.ephemerals)),
		zxid:       t.zxid,
		made:       t.made,
	}
	for path, n := range t.nodes {
		m := *n
		m.children = maps.Clone(n.children)
		c.nodes[path] = &m
	}
	for id, o := range t.ephemerals {
		c.ephemerals[id] = &owned{maps.Clone(o.paths), o.table}
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
	p.table = grownTable(p.table, len(p.children))
	t.nodes[path] = n
	if isSession(n.owner) {
		o := t.ephemerals[n.owner]
		if o == nil {
			o = &owned{map[string]struct{}{}, ownedTable}
			t.ephemerals[n.owner] = o
		}
		o.paths[path] = struct{}{}
		o.table = grownTable(o.table, len(o.paths))
	}
}

func (t *tree) unlink(path string) {
	parent, name := split(path)
	n := t.nodes[path]
	delete(t.nodes[parent].children, name)
	delete(t.nodes, path)
	if isSession(n.owner) {
		o := t.ephemerals[n.owner]
		delete(o.paths, path)
		if len(o.paths) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// ephemeralsOf returns the paths that a session owns, in the order in which a
// real server goes through them.
func (t *tree) ephemeralsOf(session int64) []string {
	o := t.ephemerals[session]
	if o == nil {
		return []string{}
	}
	entries := make([]hashEntry, 0, len(o.paths))
	for path := range o.paths {
		entries = append(entries, hashEntry{path, t.nodes[path].serial})
	}
	return copiedOrder(hashOrder(entries, o.table))
}

// childrenOf returns the names of a node's children in the order in which a
// real server lists them.
func (t *tree) childrenOf(path string) []string {
	n := t.get(path)
	prefix := strings.TrimSuffix(path, "/") + "/"
	entries := make([]hashEntry, 0, len(n.children))
	for name := range n.children {
		entries = append(entries, hashEntry{name, t.nodes[prefix+name].serial})
	}
	return hashOrder(entries, max(n.table, firstTable))
}
