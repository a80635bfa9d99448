package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The words about watches speak of those on data only, as on a real server.

// entries counts what a real server counts as its watches: a lasting one twice.
func (w watches) entries() int {
	n := 0
	for _, keys := range w.of {
		n += len(keys)
	}
	return n
}

// dataWatches returns, for each watched path, the sessions that watch it.
func (s *Server) dataWatches() map[string][]string {
	byPath := map[string][]string{}
	for key, conns := range s.watches.on {
		if key.child {
			continue
		}
		for c := range conns {
			byPath[key.path] = append(byPath[key.path], hex(c.sess.id))
		}
		slices.Sort(byPath[key.path])
	}
	return byPath
}

func (s *Server) wchs() string {
	byPath := s.dataWatches()
	total := 0
	for _, sessions := range byPath {
		total += len(sessions)
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", len(transpose(byPath)), len(byPath), total)
}

func (s *Server) wchp() string { return indented(s.dataWatches()) + "\n" }
func (s *Server) wchc() string { return indented(transpose(s.dataWatches())) + "\n" }

func transpose(lists map[string][]string) map[string][]string {
	t := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		for _, v := range lists[key] {
			t[v] = append(t[v], key)
		}
	}
	return t
}

func indented(lists map[string][]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		b.WriteString(key + "\n")
		for _, v := range lists[key] {
			b.WriteString("\t" + v + "\n")
		}
	}
	return b.String()
}
