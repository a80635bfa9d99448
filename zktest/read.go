package zktest

import "strings"

// readable finds the node that a request reads, in the connection's own view.
func (c *conn) readable(path string, perm int32) (*node, Code) {
	n := c.view().get(path)
	if n == nil {
		return nil, NoNode
	}
	if !allowed(n.acl, perm, c.ids) {
		return nil, NoAuth
	}
	return n, codeOK
}

// exists needs no permission. Its watch also waits for a node that isn't there.
func (c *conn) exists(d *decoder, e *encoder) Code {
	path, watch := d.string(), d.bool()
	if d.err != nil {
		return MarshallingError
	}
	if strings.ContainsRune(path, 0) {
		return BadArguments
	}
	if watch {
		c.s.watches.add(c, onData(path))
	}
	n := c.view().get(path)
	if n == nil {
		return NoNode
	}
	e.stat(n.stat())
	return codeOK
}

func (c *conn) getData(d *decoder, e *encoder) Code {
	path, watch := d.string(), d.bool()
	if d.err != nil {
		return MarshallingError
	}
	n, code := c.readable(path, permRead)
	if code != codeOK {
		return code
	}
	if watch {
		c.s.watches.add(c, onData(path))
	}
	e.bytes(n.data)
	e.stat(n.stat())
	return codeOK
}

func (c *conn) getChildren(d *decoder, e *encoder) Code {
	_, code := c.list(d, e)
	return code
}

func (c *conn) getChildren2(d *decoder, e *encoder) Code {
	n, code := c.list(d, e)
	if code == codeOK {
		e.stat(n.stat())
	}
	return code
}

func (c *conn) list(d *decoder, e *encoder) (*node, Code) {
	path, watch := d.string(), d.bool()
	if d.err != nil {
		return nil, MarshallingError
	}
	n, code := c.readable(path, permRead)
	if code != codeOK {
		return nil, code
	}
	if watch {
		c.s.watches.add(c, onChildren(path))
	}
	e.strings(c.view().childrenOf(path))
	return n, codeOK
}

// getACL shows password digests only to those who may change the ACL.
func (c *conn) getACL(d *decoder, e *encoder) Code {
	path := d.string()
	if d.err != nil {
		return MarshallingError
	}
	n, code := c.readable(path, permRead|permAdmin)
	if code != codeOK {
		return code
	}
	acl := n.acl
	if !allowed(n.acl, permAdmin, c.ids) {
		acl = maskACL(acl)
	}
	e.acls(acl)
	e.stat(n.stat())
	return codeOK
}
