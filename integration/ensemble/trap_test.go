package ensemble_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
)

// A client on a follower that is cut off from its leader goes on having its
// reads answered after the leader let its session expire. That is what this
// package has to reproduce for the suites which rely on it: the order of the
// two events is checked, their times are only printed.
func TestFollowerTrap(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{
		TickTime:  500 * time.Millisecond,
		SyncLimit: 20, // 10 s, much longer than the session
	})
	trap := e.Followers(t)[0]
	inside := connect(t, e.Server(trap))
	outside := connect(t, e.Server(e.Leader(t)))
	if _, err := inside.Create("/held", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	session := inside.SessionID()

	e.CutFromPeers(t, trap)
	cut := time.Now()
	for there := true; there; {
		var err error
		if there, _, err = outside.Exists("/held"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("expired at the leader %v after the cut", time.Since(cut))

	// The follower, on the same session, still shows the node.
	there, _, err := inside.Exists("/held")
	if err != nil || !there || inside.SessionID() != session {
		t.Fatalf("read at the follower: %v, %v, session 0x%x, was 0x%x; the follower noticed", there, err, inside.SessionID(), session)
	}
	reads := 0
	for ; err == nil && there; there, _, err = inside.Exists("/held") {
		reads++
		time.Sleep(10 * time.Millisecond) // not to keep a core busy with it
	}
	t.Logf("told of the loss %v after the cut, after %d more reads: %v", time.Since(cut), reads, err)

	e.Heal(t, trap)
	e.WaitReady(t)
	t.Logf("whole again after %v", time.Since(cut))
	if there, _, err := connect(t, e.Server(trap)).Exists("/held"); err != nil || there {
		t.Errorf("healed follower shows the node of the expired session: %v, %v", there, err)
	}
}

// A cut that ends before anybody gave up leaves everything as it was.
func TestShortCutHeals(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{TickTime: 500 * time.Millisecond, SyncLimit: 40})
	i := e.Followers(t)[0]
	c := connect(t, e.Server(i))
	write(t, c)
	session := c.SessionID()
	e.CutFromPeers(t, i)
	written := make(chan time.Time)
	go func() {
		write(t, c)
		written <- time.Now()
	}()
	e.Heal(t, i)
	healed := time.Now()
	t.Logf("a write that met the cut was answered %v after the heal", (<-written).Sub(healed))
	if c.SessionID() != session {
		t.Error("the session did not survive")
	}
}
