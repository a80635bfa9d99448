package zktest

import (
	"maps"
	"slices"
	"time"
)

// scheduleReaping is called with the server locked.
func (s *Server) scheduleReaping() {
	if s.opts.reap > 0 && !s.opts.noContainers {
		s.after(s.opts.reap, func() {
			s.reap()
			s.scheduleReaping()
		})
	}
}

// reap removes containers that are empty and weren't always, and childless
// nodes whose time to live has passed since they were written last. Each takes
// a txn of its own.
func (s *Server) reap() {
	for _, path := range slices.Sorted(maps.Keys(s.tree.nodes)) {
		n := s.tree.nodes[path]
		if len(n.children) > 0 {
			continue
		}
		age := time.Duration(time.Now().UnixMilli()-n.mtime) * time.Millisecond
		if n.owner == ownerContainer && n.creates > 0 || isTTL(n.owner) && age > ttlOf(n.owner) {
			tx := s.begin(0, nil)
			tx.remove(path)
			tx.end(codeOK)
		}
	}
}
