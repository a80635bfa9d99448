package ensemble

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Waiting returns how many sessions wait for one of the nodes in a directory to go:
// they watch one that is not their own. So do contenders for a lock, in all
// libraries, once they have found that it is not their turn.
func (e *Ensemble) Waiting(t testing.TB, dir string) int {
	t.Helper()
	waiting := make(map[string]bool)
	for i := range e.servers { // each knows the watches of its own clients only
		watched := e.bySession(t, i, "wchc", dir)
		owned := e.bySession(t, i, "dump", dir)
		for session, nodes := range watched {
			for owner, theirs := range owned {
				if owner != session && slices.ContainsFunc(theirs, func(n string) bool { return slices.Contains(nodes, n) }) {
					waiting[session] = true
				}
			}
		}
	}
	return len(waiting)
}

// bySession returns the nodes in a directory that the answer to a four-letter word
// names below each session.
func (e *Ensemble) bySession(t testing.TB, i int, word, dir string) map[string][]string {
	t.Helper()
	answer, err := ask(e.servers[i].addr, word, 10*time.Second)
	if err != nil {
		t.Fatalf("server %d: %s: %v", i, word, err)
	}
	nodes := make(map[string][]string)
	var session string
	for line := range strings.Lines(string(answer)) {
		line = strings.TrimRight(line, ":\n")
		if node, ok := strings.CutPrefix(line, "\t"); !ok {
			session = line
		} else if strings.HasPrefix(node, dir+"/") {
			nodes[session] = append(nodes[session], node)
		}
	}
	return nodes
}
