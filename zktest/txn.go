package zktest

import (
	"fmt"
	"math"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// txn is one committed write: it has one zxid, and happens as a whole or not at
// all. Steps act on the tree at once, so that later steps see earlier ones; a
// failed txn undoes them in reverse. Watches hear of it only after the end.
type txn struct {
	s       *Server
	tree    *tree
	zxid    int64
	now     int64 // ms
	session int64
	ids     []identity
	super   bool // no permission is asked for: a direct edit or the server itself

	undo    []func()
	changes []change
}

func (tx *txn) rollback() {
	for i := len(tx.undo) - 1; i >= 0; i-- {
		tx.undo[i]()
	}
}

// edit returns a node for writing and remembers what it was.
func (tx *txn) edit(n *node) *node {
	before := *n
	tx.undo = append(tx.undo, func() {
		children := n.children // links are undone by themselves
		*n = before
		n.children = children
	})
	return n
}

func (tx *txn) allowed(n *node, perm int32) bool {
	return tx.super || allowed(n.acl, perm, tx.ids)
}

// creation is what the five ways to create a node have in common.
type creation struct {
	path       string
	data       []byte
	acl        []jute.ACL
	sequential bool
	owner      int64
}

// create makes a node and returns its path, with the suffix if it is
// sequential.
func (tx *txn) create(c creation) (string, *node, Code) {
	if !hasParent(c.path) {
		return "", nil, BadArguments
	}
	acl := c.acl
	if !tx.super {
		var code Code
		if acl, code = resolveACL(c.acl, tx.ids); code != codeOK {
			return "", nil, code
		}
	}
	parentPath, _ := split(c.path)
	parent := tx.tree.get(parentPath)
	if parent == nil {
		return "", nil, NoNode
	}
	if !tx.allowed(parent, permCreate) {
		return "", nil, NoAuth
	}
	path := c.path
	if c.sequential {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	if !validPath(path) {
		return "", nil, BadArguments
	}
	if tx.tree.get(path) != nil {
		return "", nil, NodeExists
	}
	if isSession(parent.owner) {
		return "", nil, NoChildrenForEphemerals
	}

	parent = tx.edit(parent)
	// The counter sticks at its end, and pzxid with it, as on the real server.
	if parent.creates < math.MaxInt32 {
		parent.creates++
		parent.pzxid = tx.zxid
	}
	tx.tree.made++
	n := &node{
		serial: tx.tree.made, data: c.data, acl: acl, owner: c.owner,
		czxid: tx.zxid, mzxid: tx.zxid, pzxid: tx.zxid,
		ctime: tx.now, mtime: tx.now,
	}
	tx.tree.link(path, n)
	tx.undo = append(tx.undo, func() {
		tx.tree.unlink(path)
		tx.tree.made--
	})
	tx.changes = append(tx.changes, change{created, path, tx.zxid, n.acl, parent.acl})
	return path, n, codeOK
}

// delete removes a node without children. Version -1 is any.
func (tx *txn) delete(path string, version int32) Code {
	if !hasParent(path) || isSpecial(path) {
		return BadArguments
	}
	parentPath, _ := split(path)
	parent := tx.tree.get(parentPath)
	if parent == nil {
		return NoNode
	}
	if !tx.allowed(parent, permDelete) {
		return NoAuth
	}
	n := tx.tree.get(path)
	switch {
	case n == nil:
		return NoNode
	case version != -1 && version != n.version:
		return BadVersion
	case len(n.children) > 0:
		return NotEmpty
	}
	tx.remove(path)
	return codeOK
}

// remove takes away a node that is known to be there and to have no children.
func (tx *txn) remove(path string) {
	n := tx.tree.nodes[path]
	parentPath, _ := split(path)
	parent := tx.edit(tx.tree.nodes[parentPath])
	parent.pzxid = tx.zxid
	tx.tree.unlink(path)
	tx.undo = append(tx.undo, func() { tx.tree.link(path, n) })
	tx.changes = append(tx.changes, change{deleted, path, tx.zxid, n.acl, parent.acl})
}

func (tx *txn) setData(path string, data []byte, version int32) (*node, Code) {
	if !validPath(path) {
		return nil, BadArguments
	}
	n := tx.tree.get(path)
	switch {
	case n == nil:
		return nil, NoNode
	case !tx.allowed(n, permWrite):
		return nil, NoAuth
	case version != -1 && version != n.version:
		return nil, BadVersion
	}
	n = tx.edit(n)
	n.data = data
	n.version++
	n.mzxid, n.mtime = tx.zxid, tx.now
	tx.changes = append(tx.changes, change{changed, path, tx.zxid, n.acl, nil})
	return n, codeOK
}

// setACL replaces a node's ACL. No watch hears of it.
func (tx *txn) setACL(path string, acl []jute.ACL, version int32) (*node, Code) {
	if !validPath(path) {
		return nil, BadArguments
	}
	acl, code := resolveACL(acl, tx.ids)
	if code != codeOK {
		return nil, code
	}
	n := tx.tree.get(path)
	switch {
	case n == nil:
		return nil, NoNode
	case !tx.allowed(n, permAdmin):
		return nil, NoAuth
	case version != -1 && version != n.aversion:
		return nil, BadVersion
	}
	n = tx.edit(n)
	n.acl = acl
	n.aversion++
	return n, codeOK
}

// check is the part of a multi that only compares a version.
func (tx *txn) check(path string, version int32) Code {
	if !validPath(path) {
		return BadArguments
	}
	n := tx.tree.get(path)
	switch {
	case n == nil:
		return NoNode
	case !tx.allowed(n, permRead):
		return NoAuth
	case version != -1 && version != n.version:
		return BadVersion
	}
	return codeOK
}
