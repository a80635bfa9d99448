package link_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
)

type silent struct{}

func (silent) Printf(string, ...any) {}

func connect(t *testing.T, addr string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 2*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c, events
}

// A client in a hole loses its session, by the word of everybody else, and is
// told when the hole ends.
func TestClientInAHoleLosesItsSession(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	l := link.New(t, e.Server(0))
	inside, events := connect(t, l.Addr())
	outside, _ := connect(t, e.Server(0))
	if _, err := inside.Create("/held", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	l.Hole()
	start := time.Now()
	for there := true; there; {
		var err error
		if there, _, err = outside.Exists("/held"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("session expired %v after the hole opened; its owner is in state %v", time.Since(start), inside.State())
	l.Heal()
	healed := time.Now()
	for e := range events {
		if e.State == zk.StateExpired {
			t.Logf("its owner was told %v after the hole closed", time.Since(healed))
			return
		}
	}
	t.Fatal("its owner was never told")
}

// A cut connection is no lost session.
func TestClientSurvivesACut(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	l := link.New(t, e.Server(0))
	c, events := connect(t, l.Addr())
	session := c.SessionID()
	l.Cut()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	if c.SessionID() != session {
		t.Errorf("session is 0x%x, was 0x%x", c.SessionID(), session)
	}
}
