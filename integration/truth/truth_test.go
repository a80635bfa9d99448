package truth

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// servers are the two that are compared.
type servers struct{ real, ours string }

func TestTruth(t *testing.T) {
	// Nothing is removed by the servers themselves meanwhile: that takes zxids.
	e := ensemble.Single(t, ensemble.Options{ContainerCheck: time.Hour})
	requireVersion(t, e.Server(0))
	s := servers{
		real: e.Server(0),
		ours: zktest.Start(t, zktest.SessionTimeouts(400*time.Millisecond, time.Minute),
			zktest.ReapInterval(0), zktest.AllowOpenSessions()).Addr(),
	}
	t.Run("Scripts", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { s.compare(t, c.script) })
		}
	})
	t.Run("Handshakes", s.handshakes)
	t.Run("Expiry", s.expiry)
	t.Run("Words", s.words)
	t.Run("ZkCli", s.zkCli)
	t.Run("Generated", s.generated)
}

var versionLine = regexp.MustCompile(`(?m)^Zookeeper version: (3\.8)\.`)

func requireVersion(t *testing.T, addr string) {
	if answer := word(t, addr, "srvr"); !versionLine.MatchString(answer) {
		t.Skipf("the model of zktest is ZooKeeper 3.8, and this server is another: %s", answer)
	}
}

// word asks a server by a four-letter word.
func word(t testing.TB, addr, w string) string {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	io.WriteString(nc, w)
	answer, err := io.ReadAll(nc)
	if err != nil {
		t.Fatalf("%s: %v", w, err)
	}
	return string(answer)
}

var directories atomic.Int64

// compare plays a script to both servers, and fails the test at the first step
// after which they disagree.
func (s servers) compare(t fataler, sc script) {
	t.Helper()
	root := fmt.Sprintf("/t%d", directories.Add(1))
	want := play(t, s.real, root, sc)
	got := play(t, s.ours, root, sc)
	for i := range max(len(want), len(got)) {
		w, g := at(want, i), at(got, i)
		if w == g {
			continue
		}
		what := "in the end"
		if i < len(sc) {
			what = fmt.Sprintf("step %d, %v", i, sc[i])
		}
		t.Fatalf("they disagree, %s:\n  real: %s\nzktest: %s\nscript:\n%v", what, w, g, sc[:min(len(sc), i+1)])
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// both compares what f writes down about each server.
func both(t *testing.T, s servers, f func(addr string) []string) {
	t.Helper()
	want, got := f(s.real), f(s.ours)
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			t.Fatalf("they disagree, line %d:\n  real: %s\nzktest: %s", i, w, g)
		}
	}
}

var zxids = regexp.MustCompile(`[+-]\d+`)

func withoutZxids(line string) string { return zxids.ReplaceAllString(line, "") }
