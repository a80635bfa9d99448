package session_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 33
func TestHandshakeThatHangsIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		_, lost := holdNew(t, l)
		read := history(s)
		start := time.Now()
		for range 3 {
			arrived, release := srv.HoldRequest(zktest.OpConnect, 1)
			srv.Cut(0)
			<-arrived
			again, releaseAgain := srv.HoldRequest(zktest.OpConnect, 1)
			held := time.Now()
			<-again
			if d := time.Since(held); d > timeout/3+2*time.Second {
				t.Errorf("the next attempt came after %v", d)
			}
			if st := s.State(); st != session.Suspended {
				t.Errorf("%v in mid-handshake", st)
			}
			release()
			releaseAgain()
			time.Sleep(timeout)
		}
		if lost.yet() {
			t.Errorf("lost to %v after %v", lost.cause, lost.at.Sub(start))
		}
		s.Close()
		if got := read(); slices.Contains(got, session.Lost) {
			t.Errorf("states %v", got)
		}
	})
}

// case 35: the life of one session is never carried on by another, even where
// the ensemble says so; and the other is closed.
func TestResumeAnsweredWithAnotherSession(t *testing.T) {
	const foreign = 0x7700000000000001
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		path := node(t, l, "/n-")
		_, lost := hold(t, l, path)
		srv.AnswerResumeWith(foreign)
		srv.Cut(l.ID())
		lost.wait(t)
		if lost.cause != session.ErrReplaced || l.Err() != session.ErrReplaced || !lost.gone {
			t.Errorf("lost to %v, %v", lost.cause, l.Err())
		}
		next := life(t, s)
		if next.ID() == foreign || next.ID() == l.ID() {
			t.Errorf("the next life is %#x", next.ID())
		}
		if st, err := next.Exists(t.Context(), path); err != nil || st == nil {
			t.Fatalf("the old node should still be there: %v", err)
		}
		h, err := next.Hold(t.Context(), path, 0, nil, func(error, bool) {})
		time.Sleep(time.Second)
		if err == nil && h.Remaining() > 0 {
			t.Error("a node of the old session is held under the new one")
		}
		for _, sess := range srv.Sessions() {
			if sess.ID == foreign {
				t.Error("the foreign session was left open")
			}
		}
		srv.Expire(l.ID())
	})
}

// case 42
func TestEnsembleWiped(t *testing.T) {
	for _, holding := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			lost := &loss{told: make(chan struct{})}
			if holding {
				_, lost = holdNew(t, l)
			}
			for range 100 { // so that the new zxids are behind
				srv.Create("/x", nil)
				srv.Delete("/x")
			}
			node(t, l, "/seen-")
			start := time.Now()
			srv.Wipe()
			<-l.Done()
			if d := time.Since(start); d > timeout {
				t.Errorf("lost after %v", d)
			}
			if holding && (!lost.yet() || lost.cause != session.ErrTrustOver) || !holding && l.Err() != session.ErrUnreachable {
				t.Errorf("told: %v, %v, %v", lost.yet(), lost.cause, l.Err())
			}
			within(t, 2*time.Second, "the next life", func() { holdNew(t, life(t, s)) })
		})
	}
}

// ops collects the requests that the server sees, pings left out.
type ops struct {
	mu   sync.Mutex
	list []zktest.Op
}

func (o *ops) see(r zktest.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Op != zktest.OpPing {
		o.list = append(o.list, r.Op)
	}
}

func (o *ops) take() []zktest.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

var auths = []session.Auth{{Scheme: "digest", Credentials: "user:secret"}, {Scheme: "digest", Credentials: "other:secret"}}

// case 76
func TestCredentialsComeBeforeAnythingElse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var seen ops
		srv.OnRequest(seen.see)
		cfg := config(srv)
		cfg.Auth = auths
		cfg.ACL = zk.DigestACL(zk.PermAll, "user", "secret")
		s, l := open(t, cfg)
		path := node(t, l, "/n-")
		greeting := []zktest.Op{zktest.OpConnect, zktest.OpAuth, zktest.OpAuth}
		if got := seen.take(); len(got) < 3 || !slices.Equal(got[:3], greeting) {
			t.Errorf("requests %v", got)
		}
		for round := range 20 {
			seen.take()
			if round%2 == 0 {
				srv.Cut(0)
			} else {
				srv.Expire(s.ID())
			}
			var wg sync.WaitGroup
			for range 5 { // requests that wait for the connection
				wg.Go(func() {
					if _, _, err := l.Get(context.Background(), path); errors.Is(err, zk.ErrNoAuth) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			l = life(t, s)
			path = node(t, l, "/n-")
			first := true
			for got := seen.take(); len(got) > 0; {
				if got[0] == zktest.OpConnect {
					first = false
					n := min(3, len(got))
					if next := slices.Index(got[1:], zktest.OpConnect); next >= 0 {
						n = min(n, next+1) // the session had expired
					}
					if !slices.Equal(got[:n], greeting[:n]) {
						t.Fatalf("round %d: requests %v", round, got)
					}
				} else if first {
					t.Fatalf("round %d: a request before the connection: %v", round, got)
				}
				got = got[1:]
			}
		}
	})
}

// case 76
func TestConnectionResetDuringAuthentication(t *testing.T) {
	for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
		for n := 1; n <= 2; n++ {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				cfg := config(srv)
				cfg.Auth = auths
				cfg.ACL = zk.DigestACL(zk.PermAll, "user", "secret")
				lose(srv, zktest.OpAuth, n)
				_, l := open(t, cfg)
				_, lost := holdNew(t, l)
				lose(srv, zktest.OpAuth, n)
				srv.Cut(0)
				within(t, 2*time.Second, "a request", func() { node(t, l, "/m-") })
				// A server that does not answer.
				arrived, _ := srv.HoldRequest(zktest.OpAuth, n)
				srv.Cut(0)
				<-arrived
				within(t, timeout/3+2*time.Second, "a request", func() { node(t, l, "/m-") })
				if lost.yet() {
					t.Errorf("lost to %v", lost.cause)
				}
			}, zktest.AllowOpenSessions()) // the one that nobody could be told of
		}
	}
}

// case 76: a write that fails while the credentials are presented.
func TestWriteFailsDuringAuthentication(t *testing.T) {
	for n := range 5 {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			var mu sync.Mutex
			left := 1000
			cfg := config(srv)
			cfg.Auth = auths
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := srv.Dial(ctx, network, addr)
				return &brittle{conn, &mu, &left}, err
			}
			_, l := open(t, cfg)
			_, lost := holdNew(t, l)
			mu.Lock()
			left = n
			mu.Unlock()
			srv.Cut(0)
			within(t, 2*time.Second, "a request", func() { node(t, l, "/m-") })
			if lost.yet() {
				t.Errorf("lost to %v", lost.cause)
			}
		}, zktest.AllowOpenSessions()) // it may be the last request that fails
	}
}

// A brittle connection fails at one write.
type brittle struct {
	net.Conn
	mu   *sync.Mutex
	left *int // writes until then
}

func (b *brittle) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *b.left--; *b.left == -1 {
		return 0, errors.New("broken")
	}
	return b.Conn.Write(p)
}

// case 75, case 76
func TestCredentialsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.Auth = auths
		srv.FailRequest(zktest.OpAuth, 2, int32(zktest.AuthFailed))
		within(t, 10*time.Millisecond, "Open", func() {
			if _, err := session.Open(t.Context(), cfg); !errors.Is(err, session.ErrAuthFailed) {
				t.Error(err)
			}
		})
		cfg.Auth = []session.Auth{{Scheme: "unheard of", Credentials: "x"}}
		if _, err := session.Open(t.Context(), cfg); !errors.Is(err, session.ErrAuthFailed) {
			t.Error(err)
		}

		// Once a session has stood, they may be accepted again.
		cfg.Auth = auths
		s, l := open(t, cfg)
		_, lost := holdNew(t, l)
		srv.FailRequest(zktest.OpAuth, 1, int32(zktest.AuthFailed))
		srv.FailRequest(zktest.OpAuth, 2, int32(zktest.AuthFailed))
		srv.Cut(0)
		lost.wait(t)
		if !errors.Is(lost.cause, session.ErrAuthFailed) {
			t.Errorf("lost to %v", lost.cause)
		}
		within(t, 2*time.Second, "the next life", func() { holdNew(t, life(t, s)) })
	}, zktest.AllowOpenSessions())
}
