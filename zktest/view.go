package zktest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// View is the state of a server at one moment: what the methods of the same
// names say, all at once. It is good only during the call that it is handed to;
// that call must be quick and must not call methods of the Server.
type View struct{ s *Server }

// WaitFor waits until cond holds: it is asked at once and after every change of
// the server's state (a request arriving or carried out, a session or a
// connection beginning or ending, a fault switched). It returns nil when cond
// has held, context.Cause(ctx) if ctx ends first, and ErrClosed once the server
// is closed.
func (s *Server) WaitFor(ctx context.Context, cond func(*View) bool) error {
	for {
		ok, change := s.ask(cond)
		if ok {
			return nil
		}
		if change == nil {
			return ErrClosed
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask returns what cond says now, and a channel that is closed at the next
// change; nil if there will be none.
func (s *Server) ask(cond func(*View) bool) (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok := cond(&View{s}); ok || s.closed {
		return ok, nil
	}
	if s.change == nil {
		s.change = make(chan struct{})
	}
	return false, s.change
}

// look runs f on the present state.
func look[T any](s *Server, f func(*View) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&View{s})
}

// Exists reports whether a node is there.
func (v *View) Exists(path string) bool { return v.s.tree.get(path) != nil }

// Exists reports whether a node is there.
func (s *Server) Exists(path string) bool {
	return look(s, func(v *View) bool { return v.Exists(path) })
}

// Stat returns a node's stat, or false if there is no such node.
func (v *View) Stat(path string) (Stat, bool) {
	n := v.s.tree.get(path)
	if n == nil {
		return Stat{}, false
	}
	return Stat(n.stat()), true
}

// Stat returns a node's stat, or false if there is no such node.
func (s *Server) Stat(path string) (Stat, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&View{s}).Stat(path)
}

// Data returns a copy of a node's data, or false if there is no such node.
func (v *View) Data(path string) ([]byte, bool) {
	n := v.s.tree.get(path)
	if n == nil {
		return nil, false
	}
	return slices.Clone(n.data), true
}

// Data returns a copy of a node's data, or false if there is no such node.
func (s *Server) Data(path string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&View{s}).Data(path)
}

// Children returns the names of a node's children, sorted; none if there is no
// such node.
func (v *View) Children(path string) []string {
	n := v.s.tree.get(path)
	if n == nil {
		return nil
	}
	return n.sortedChildren()
}

// Children returns the names of a node's children, sorted; none if there is no
// such node.
func (s *Server) Children(path string) []string {
	return look(s, func(v *View) []string { return v.Children(path) })
}

func (n *node) sortedChildren() []string { return slices.Sorted(maps.Keys(n.children)) }

// Sessions returns the sessions that haven't ended, by id.
func (v *View) Sessions() []SessionInfo {
	var list []SessionInfo
	for _, sess := range v.s.sortedSessions() {
		info := SessionInfo{
			ID: sess.id, Timeout: sess.timeout, Connected: sess.conn != nil,
			Ephemerals: len(v.s.tree.ephemeralsOf(sess.id)),
		}
		if sess.conn != nil {
			info.Watches = v.s.watches.countOf(sess.conn)
		}
		list = append(list, info)
	}
	return list
}

// Sessions returns the sessions that haven't ended, by id.
func (s *Server) Sessions() []SessionInfo { return look(s, (*View).Sessions) }

// Watches returns how many watches stand.
func (v *View) Watches() int { return v.s.watches.count() }

// Watches returns how many watches stand.
func (s *Server) Watches() int { return look(s, (*View).Watches) }

// Requests returns the counts.
func (v *View) Requests() Counts { return v.s.counts.clone() }

// Zxid returns the zxid of the last change.
func (v *View) Zxid() int64 { return v.s.tree.zxid }

// Zxid returns the zxid of the last change.
func (s *Server) Zxid() int64 { return look(s, (*View).Zxid) }

// Tree returns a readable dump of all nodes: path, data, version, and what kind
// of node it is if it isn't persistent.
func (s *Server) Tree() string {
	return look(s, func(v *View) string {
		var b strings.Builder
		for _, path := range slices.Sorted(maps.Keys(v.s.tree.nodes)) {
			n := v.s.tree.nodes[path]
			fmt.Fprintf(&b, "%s %q v%d", path, n.data, n.version)
			switch {
			case n.owner == ownerContainer:
				b.WriteString(" container")
			case isTTL(n.owner):
				fmt.Fprintf(&b, " ttl %v", ttlOf(n.owner))
			case n.owner != 0:
				fmt.Fprintf(&b, " ephemeral %s", hex(n.owner))
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}
