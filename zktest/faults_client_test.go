package zktest_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// The unmodified client, in virtual time.

// follow connects and returns the client with the session events that come
// after the first session.
func follow(t *testing.T, s *zktest.Server, timeout time.Duration) (*zk.Conn, <-chan zk.State) {
	t.Helper()
	states := make(chan zk.State, 1000)
	c, _, err := zk.Connect([]string{s.Addr()}, timeout,
		zk.WithDialer(s.DialTimeout), zk.WithLogger(quiet{t}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(ev zk.Event) {
			if ev.Type == zk.EventSession {
				states <- ev.State
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	await(states, zk.StateHasSession)
	return c, states
}

func await(states <-chan zk.State, want zk.State) {
	for st := range states {
		if st == want {
			return
		}
	}
}

func TestSessionOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c := connect(t, s, 10*time.Second)
		id := c.SessionID()
		must(c.Create("/e", nil, zk.FlagEphemeral, open))(t)
		time.Sleep(2 * time.Hour)
		if c.SessionID() != id || !s.Exists("/e") {
			t.Error("the session didn't last")
		}
		if n := s.Requests().Of(zktest.OpPing); n < 2000 {
			t.Errorf("%d pings", n)
		}
	})
}

func TestClientIsToldOfItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c, states := follow(t, s, 10*time.Second)
		must(c.Create("/e", nil, zk.FlagEphemeral, open))(t)
		id := c.SessionID()
		if err := s.Expire(id); err != nil {
			t.Fatal(err)
		}
		await(states, zk.StateDisconnected)
		await(states, zk.StateExpired)
		await(states, zk.StateHasSession) // it goes on with another session
		if c.SessionID() == id || s.Exists("/e") {
			t.Error("nothing expired")
		}
	})
}

func TestClientDoesntKnowWhatBecameOfItsCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c, states := follow(t, s, 10*time.Second)
		id := c.SessionID()
		s.LoseReply(zktest.OpCreate, 1)
		if _, err := c.Create("/e", nil, zk.FlagEphemeral, open); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("%v", err)
		}
		await(states, zk.StateHasSession)
		_, stat, err := c.Exists("/e")
		if err != nil || stat.EphemeralOwner != id {
			t.Errorf("%+v %v", stat, err)
		}
	})
}

func TestClientInABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c, states := follow(t, s, 12*time.Second)
		must(c.Create("/e", nil, zk.FlagEphemeral, open))(t)
		id := c.SessionID()
		start := time.Now()
		s.BlackHole(0, zktest.Both)
		await(states, zk.StateDisconnected)
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("disconnect noticed after %v", d)
		}
		time.Sleep(20 * time.Second)
		if s.Exists("/e") {
			t.Error("the session outlived its time")
		}
		if c.SessionID() != id {
			t.Error("the client heard of it")
		}
		s.Heal()
		await(states, zk.StateExpired)
		await(states, zk.StateHasSession)
	})
}

func TestClientOfAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory(), zktest.AllowOpenSessions())
		c, states := follow(t, s, 10*time.Second)
		s.AnswerResumeWith(4711)
		s.Cut(c.SessionID())
		await(states, zk.StateHasSession)
		if c.SessionID() != 4711 {
			t.Errorf("session %d", c.SessionID())
		}
	})
}

func TestClientOfAWipedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c, states := follow(t, s, 10*time.Second)
		must(c.Create("/x", nil, 0, open))(t)
		s.Wipe()
		await(states, zk.StateDisconnected)
		time.Sleep(time.Minute)
		if c.State() == zk.StateHasSession || len(s.Sessions()) != 0 {
			t.Error("a client from the future got a session")
		}
	})
}

func TestMultiOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		c := connect(t, s, 10*time.Second)
		must(c.Create("/a", nil, 0, open))(t)
		results, err := c.Multi(
			&zk.CheckVersionRequest{Path: "/a", Version: -1},
			&zk.CreateRequest{Path: "/a/n-", Acl: open, Flags: zk.FlagSequence | zk.FlagEphemeral},
			&zk.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 0})
		if err != nil || results[1].String != "/a/n-0000000000" || results[2].Stat.Version != 1 {
			t.Errorf("%+v %v", results, err)
		}
		if _, err := c.Multi(&zk.DeleteRequest{Path: "/a", Version: 7}); err != zk.ErrBadVersion {
			t.Errorf("%v", err)
		}
	})
}

func TestClientsOwnLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		const clients = 5
		order := make(chan int, clients)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range clients {
			l := zk.NewLock(connect(t, s, 10*time.Second), "/lock", open)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second) // one after the other
				if err := l.Lock(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				order <- i
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
			})
		}
		for want := range clients {
			if got := <-order; got != want {
				t.Errorf("%d came in the place of %d", got, want)
			}
		}
	})
}

func TestAuthOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t, zktest.InMemory())
		owner, other := connect(t, s, 10*time.Second), connect(t, s, 10*time.Second)
		if err := owner.AddAuth("digest", []byte("u:p")); err != nil {
			t.Fatal(err)
		}
		must(owner.Create("/a", nil, 0, zk.DigestACL(zk.PermAll, "u", "p")))(t)
		if _, _, err := other.Get("/a"); err != zk.ErrNoAuth {
			t.Errorf("%v", err)
		}
		if _, _, err := owner.Get("/a"); err != nil {
			t.Errorf("%v", err)
		}
	})
}
