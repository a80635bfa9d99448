package zktest

import (
	"slices"
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// The requests of this file are what command-line tools ask for.

// getEphemerals lists what the session owns, of the paths with a given prefix.
func (c *conn) getEphemerals(d *jute.Decoder, e *jute.Encoder) Code {
	prefix := d.Text()
	if d.Err != nil {
		return MarshallingError
	}
	paths := c.view().ephemeralsOf(c.sess.id)
	if word := strings.TrimSpace(prefix); word != "" && word != "/" {
		paths = slices.DeleteFunc(paths, func(p string) bool { return !strings.HasPrefix(p, prefix) })
	}
	e.Strings(paths)
	return codeOK
}

// getAllChildrenNumber counts everything below a node.
func (c *conn) getAllChildrenNumber(d *jute.Decoder, e *jute.Encoder) Code {
	path := d.Text()
	if d.Err != nil {
		return MarshallingError
	}
	if _, code := c.readable(path, permRead); code != codeOK {
		return code
	}
	n := 0
	prefix := strings.TrimSuffix(path, "/") + "/"
	for p := range c.view().nodes {
		// Below the empty path, which is the root, the root itself counts.
		if (p != "/" || path == "") && strings.HasPrefix(p, prefix) {
			n++
		}
	}
	e.Int32(int32(n))
	return codeOK
}

// whoAmI lists what the connection has proved to be.
func (c *conn) whoAmI(_ *jute.Decoder, e *jute.Encoder) Code {
	e.Int32(int32(len(c.ids)))
	for _, id := range c.ids {
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.Fields(id.scheme, user)
	}
	return codeOK
}
