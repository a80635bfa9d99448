package zktest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
)

// The goroutines of a test are told by a label, which a goroutine has from the
// one that started it: those of tests that run beside it have another.
const testLabel = "zktest.test"

// markGoroutine labels the calling goroutine, and thereby all that it starts
// from now on.
func markGoroutine(t testing.TB) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(testLabel, t.Name())))
}

// leftGoroutines returns the stacks of the goroutines of a test that don't end
// within a while. It is called on the test's own goroutine, which loses its label.
func leftGoroutines(t testing.TB) []string {
	pprof.SetGoroutineLabels(context.Background())
	for wait := time.Millisecond; ; wait *= 2 {
		left := labelled(t.Name())
		if len(left) == 0 || wait > 2*time.Second {
			return left
		}
		time.Sleep(wait) // those that are about to end need time, be it virtual
	}
}

// labelled returns the stacks of the goroutines that have the label of a test.
func labelled(test string) []string {
	var profile strings.Builder
	pprof.Lookup("goroutine").WriteTo(&profile, 1)
	label := fmt.Sprintf("%q:%q", testLabel, test)
	var stacks []string
	for entry := range strings.SplitSeq(profile.String(), "\n\n") {
		_, rest, _ := strings.Cut(entry, "\n")
		labels, stack, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(labels, "# labels: ") || !strings.Contains(labels, label) {
			continue
		}
		// A process has only one of this, and it belongs to nobody.
		if strings.Contains(stack, "os/signal.loop") {
			continue
		}
		stacks = append(stacks, stack)
	}
	return stacks
}

// checkLeft fails the test if something of its clients is left. The server is
// closed meanwhile.
func (s *Server) checkLeft(t testing.TB) {
	t.Helper()
	left := look(s, (*View).left)
	s.Close()
	if s.opts.allowOpen {
		return
	}
	for _, what := range left {
		t.Errorf("zktest: left open at the end of the test: %s", what)
	}
	if len(left) > 0 || s.opts.allowGoroutines {
		return // the goroutines of its client say nothing new
	}
	for _, stack := range leftGoroutines(t) {
		t.Errorf("zktest: a goroutine is left at the end of the test:\n%s", stack)
	}
}

// left describes the sessions that are open, with what they keep.
func (v *View) left() []string {
	var list []string
	for _, sess := range v.s.sortedSessions() {
		var watches []string
		if sess.conn != nil {
			for key := range v.s.watches.of[sess.conn] {
				what := "data of "
				if key.child {
					what = "children of "
				}
				watches = append(watches, what+key.path)
			}
		}
		slices.Sort(watches)
		how := "connected"
		if sess.conn == nil {
			how = fmt.Sprintf("not connected: a client that was cut off from it does not close it, and it would expire in %v; wait for that, or call Expire",
				time.Until(sess.expires))
		}
		list = append(list, fmt.Sprintf("session %s (%s) with ephemeral nodes %q and watches %q",
			hex(sess.id), how, v.s.tree.ephemeralsOf(sess.id), watches))
	}
	return list
}
