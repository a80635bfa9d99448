package zktest

import (
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// The kinds of watches that checkWatches and removeWatches speak of.
const (
	kindChildren int32 = iota + 1
	kindData
	kindAny
)

// addWatch sets a watch that lasts, also where there is no node. No permission
// is asked for.
func (c *conn) addWatch(d *jute.Decoder, e *jute.Encoder) Code {
	path, mode := d.Text(), watchMode(d.Int32())
	if d.Err != nil || mode != persistent && mode != recursive {
		return MarshallingError
	}
	c.s.watches.addLasting(c, path, mode)
	e.Int32(0)
	return codeOK
}

// checkWatches asks whether a watch stands. As on a real 3.8.0, anybody's watch
// on the path counts.
func (c *conn) checkWatches(d *jute.Decoder, _ *jute.Encoder) Code {
	path, kind := d.Text(), d.Int32()
	if d.Err != nil || path != "" && !strings.Contains(path, "/") {
		return MarshallingError
	}
	return onKind(path, kind, func(key watchKey) bool { return path != "" && len(c.s.watches.on[key]) > 0 })
}

func (c *conn) removeWatches(d *jute.Decoder, _ *jute.Encoder) Code {
	path, kind := d.Text(), d.Int32()
	if d.Err != nil {
		return MarshallingError
	}
	return onKind(path, kind, func(key watchKey) bool { return c.s.watches.take(c, key) })
}

// onKind does something with the watches on a path that are of a kind. It answers
// NoWatcher if that comes to nothing.
func onKind(path string, kind int32, do func(watchKey) bool) Code {
	if kind < kindChildren || kind > kindAny {
		return MarshallingError
	}
	found := false
	if kind != kindData {
		found = do(onChildren(path))
	}
	if kind != kindChildren {
		found = do(onData(path)) || found
	}
	if !found {
		return NoWatcher
	}
	return codeOK
}
