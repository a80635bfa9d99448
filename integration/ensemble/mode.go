package ensemble

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The modes that a server can be in, as "srvr" names them. A server that does
// not answer, or has no ensemble to serve with, is in none: "".
const (
	Leader     = "leader"
	Follower   = "follower"
	Standalone = "standalone"
)

var modeLine = regexp.MustCompile(`(?m)^Mode: (\w+)`)

// Mode asks server i which mode it is in; it takes 0.4 s at most. The answer is
// the server's own opinion: a leader that was cut off goes on calling itself one
// for a while.
func (e *Ensemble) Mode(i int) string { return mode(e.servers[i].addr) }

func mode(addr string) string {
	// A short deadline and another try, rather than patience: a connection that
	// was made while the server started may be accepted and never answered.
	answer, _ := ask(addr, "srvr", 400*time.Millisecond)
	if m := modeLine.FindSubmatch(answer); m != nil {
		return string(m[1])
	}
	return ""
}

// ask sends a server one of the words of four letters that it has answers to.
func ask(addr, word string, patience time.Duration) (answer []byte, err error) {
	deadline := time.Now().Add(patience)
	c, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(deadline)
	if _, err := io.WriteString(c, word); err != nil {
		return nil, err
	}
	return io.ReadAll(c)
}

// modes asks all servers.
func (e *Ensemble) modes() []string {
	modes := make([]string, len(e.servers))
	for i := range e.servers {
		modes[i] = e.Mode(i)
	}
	return modes
}

// WaitReady waits until every server serves: the single one, or one leader with
// all the others following it. It fails the test if that takes minutes.
func (e *Ensemble) WaitReady(t testing.TB) {
	t.Helper()
	if len(e.servers) == 1 {
		e.waitModes(t, "to serve", func(m []string) bool { return m[0] == Standalone })
		return
	}
	e.waitModes(t, "to be one leader and followers", func(m []string) bool {
		return count(m, Leader) == 1 && count(m, Follower) == len(m)-1
	})
}

// WaitMode waits until server i is in one of the modes ("" for: does not serve).
// It fails the test if that takes minutes.
func (e *Ensemble) WaitMode(t testing.TB, i int, want ...string) {
	t.Helper()
	e.waitModes(t, fmt.Sprintf("%d to be %q", i, want), func(m []string) bool { return slices.Contains(want, m[i]) })
}

// Leader returns the number of the leader; it waits until there is exactly one
// with a majority. It fails the test if that takes minutes.
func (e *Ensemble) Leader(t testing.TB) int {
	t.Helper()
	m := e.waitModes(t, "to have a leader", func(m []string) bool {
		return count(m, Leader) == 1 && 2*(1+count(m, Follower)) > len(m)
	})
	return slices.Index(m, Leader)
}

// Followers returns the numbers of the servers that follow a leader; it waits
// until there is a leader, and one follower at least.
func (e *Ensemble) Followers(t testing.TB) []int {
	t.Helper()
	m := e.waitModes(t, "to have a leader and a follower", func(m []string) bool {
		return count(m, Leader) == 1 && count(m, Follower) > 0
	})
	var followers []int
	for i, mode := range m {
		if mode == Follower {
			followers = append(followers, i)
		}
	}
	return followers
}

// waitModes asks the servers until ok likes the answer.
func (e *Ensemble) waitModes(t testing.TB, what string, ok func([]string) bool) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startup)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		m := e.modes()
		if ok(m) {
			return m
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited for the servers %s; they are %s", what, strings.Join(m, ","))
		case <-pause.C:
		}
	}
}

func count(modes []string, mode string) (n int) {
	for _, m := range modes {
		if m == mode {
			n++
		}
	}
	return n
}
