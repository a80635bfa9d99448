package session_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestOpenUnderAContextThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if s, err := session.Open(ctx, config(srv)); s != nil || !errors.Is(err, cause) {
			t.Errorf("%v, %v", s, err)
		}
		if n := srv.Requests().Of(zktest.OpConnect); n != 0 {
			t.Errorf("%d connections", n)
		}
	})
}

// case 21: Open ends with its context, and says what went wrong.
func TestOpenWithoutServers(t *testing.T) {
	states := map[string]func(*zktest.Server){
		"refused":       func(srv *zktest.Server) { srv.Refuse(true) },
		"black hole":    func(srv *zktest.Server) { srv.BlackHole(0, zktest.ToServer) },
		"no answer":     func(srv *zktest.Server) { srv.BlackHole(0, zktest.ToClient) },
		"no connection": nil,
	}
	for name, disturb := range states {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				cfg := config(srv)
				if disturb != nil {
					disturb(srv)
				} else {
					cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
				}
				for _, d := range []time.Duration{50 * time.Millisecond, time.Second, 3 * timeout} {
					start := time.Now()
					s, err := session.Open(after(t, d), cfg)
					if took := time.Since(start); s != nil || !errors.Is(err, context.DeadlineExceeded) || took < d || took > d+100*time.Millisecond {
						t.Errorf("%v, %v after %v: want it after %v", s, err, took, d)
					}
					var e *session.Error
					if d > timeout && (!errors.As(err, &e) || e.LastErr == nil) {
						t.Errorf("%v: does not say what went wrong", err)
					}
				}
			}, zktest.AllowOpenSessions())
		})
	}
}

// An Open that is given up in mid-handshake leaves no session behind.
func TestOpenGivenUpAtEveryStep(t *testing.T) {
	for step := range 12 {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			srv.Delay(10 * time.Millisecond)
			cfg := config(srv)
			cfg.Auth = []session.Auth{{Scheme: "digest", Credentials: "u:p"}}
			cfg.Chroot = "/a/b"
			s, err := session.Open(after(t, time.Duration(step)*5*time.Millisecond), cfg)
			if err == nil {
				s.Close()
			}
			time.Sleep(time.Second)
		})
	}
}

// case 38
func TestTimeoutIsTheOneGranted(t *testing.T) {
	for asked, granted := range map[time.Duration]time.Duration{
		0:                         session.DefaultTimeout,
		session.MinTimeout:        4 * time.Second,
		session.MaxTimeout:        20 * time.Second,
		7 * time.Second:           7 * time.Second,
		4500*time.Millisecond + 1: 4500 * time.Millisecond,
	} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			cfg := config(srv)
			cfg.Timeout = asked
			s, l := open(t, cfg)
			if s.Timeout() != granted || l.Timeout() != granted {
				t.Errorf("asked for %v, have %v and %v: want %v", asked, s.Timeout(), l.Timeout(), granted)
			}
			// All timers go by what was granted.
			_, lost := holdNew(t, l)
			time.Sleep(3 * granted)
			srv.ResetCounts()
			time.Sleep(3 * granted)
			if n := srv.Requests().Of(zktest.OpMulti); n < 17 || n > 19 || lost.yet() {
				t.Errorf("%d heartbeats in three timeouts of %v", n, granted)
			}
			cut := time.Now()
			srv.BlackHole(0, zktest.Both)
			if lost.wait(t); lost.at.Sub(cut) >= granted*95/100 || lost.at.Sub(cut) < granted/4 {
				t.Errorf("lost %v after the cut with a timeout of %v", lost.at.Sub(cut), granted)
			}
			srv.Heal()
		}, zktest.SessionTimeouts(4*time.Second, 20*time.Second), zktest.AllowOpenSessions())
	}
}

// case 38: what can't be right is refused before anything is sent.
func TestConfigRefused(t *testing.T) {
	dialed := false
	good := func() session.Config {
		return session.Config{
			Servers: []string{"zk1:2181"},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				dialed = true
				return nil, errors.New("dialed")
			},
		}
	}
	for name, spoil := range map[string]func(*session.Config){
		"no servers":        func(c *session.Config) { c.Servers = nil },
		"no port":           func(c *session.Config) { c.Servers = []string{"zk1"} },
		"no host":           func(c *session.Config) { c.Servers = []string{":2181"} },
		"port 0":            func(c *session.Config) { c.Servers = []string{"zk1:2181", "zk2:0"} },
		"port too large":    func(c *session.Config) { c.Servers = []string{"zk1:65536"} },
		"port name":         func(c *session.Config) { c.Servers = []string{"zk1:zk"} },
		"connect string":    func(c *session.Config) { c.Servers = []string{"zk1:2181,zk2:2181"} },
		"no port but last":  func(c *session.Config) { c.Servers = []string{"zk1,zk2:2181"} },
		"chroot at address": func(c *session.Config) { c.Servers = []string{"zk1:2181/app"} },
		"URL":               func(c *session.Config) { c.Servers = []string{"zk://zk1:2181"} },
		"spaces":            func(c *session.Config) { c.Servers = []string{"zk1 zk2:2181"} },
		"line end":          func(c *session.Config) { c.Servers = []string{"zk1:2181", "zk2\n:2181"} },
		"not UTF-8":         func(c *session.Config) { c.Servers = []string{"\xff:2181"} },
		"negative timeout":  func(c *session.Config) { c.Timeout = -1 },
		"timeout of 1ns":    func(c *session.Config) { c.Timeout = 1 },
		"timeout too short": func(c *session.Config) { c.Timeout = session.MinTimeout - 1 },
		"timeout too long":  func(c *session.Config) { c.Timeout = session.MaxTimeout + 1 },
		"longest timeout":   func(c *session.Config) { c.Timeout = math.MaxInt64 },
		"relative chroot":   func(c *session.Config) { c.Chroot = "a" },
		"chroot with /":     func(c *session.Config) { c.Chroot = "/a/" },
		"auth, no scheme":   func(c *session.Config) { c.Auth = []session.Auth{{Credentials: "u:p"}} },
		"auth, no password": func(c *session.Config) { c.Auth = []session.Auth{{Scheme: "digest", Credentials: "u:"}} },
		"auth, no user":     func(c *session.Config) { c.Auth = []session.Auth{{Scheme: "digest", Credentials: ":p"}} },
		"auth, no colon":    func(c *session.Config) { c.Auth = []session.Auth{{Scheme: "digest", Credentials: "u"}} },
	} {
		cfg := good()
		spoil(&cfg)
		synctest.Test(t, func(t *testing.T) {
			if s, err := session.Open(after(t, time.Second), cfg); s != nil || !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if dialed {
		t.Error("a server was dialed")
	}
}

// case 80: names are resolved again: the dialer hears the name at each attempt.
func TestNamesAreResolvedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		address := "10.0.0.1:2181"
		cfg := config(srv)
		cfg.Servers = []string{"zk.example:2181", "zk2.example:2181"}
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			resolved := address
			mu.Unlock()
			if addr != "zk.example:2181" && addr != "zk2.example:2181" {
				t.Errorf("asked for %s", addr)
			}
			if resolved != "10.0.0.2:2181" && srv.Requests().Of(zktest.OpConnect) > 0 {
				return nil, errors.New("nobody lives there any more")
			}
			return srv.Dial(ctx, network, addr)
		}
		_, l := open(t, cfg)
		_, lost := holdNew(t, l)
		srv.Cut(0)
		time.Sleep(timeout / 3)
		mu.Lock()
		address = "10.0.0.2:2181"
		mu.Unlock()
		time.Sleep(timeout)
		if lost.yet() || l.Err() != nil {
			t.Errorf("lost to %v", lost.cause)
		}
	})
}

// case 81
func TestSingleServerIsDialedAgainAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		var dials []time.Time
		cfg := config(srv)
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dials = append(dials, time.Now())
			return srv.Dial(ctx, network, addr)
		}
		_, l := open(t, cfg)
		for range 5 {
			time.Sleep(time.Second)
			srv.Cut(0)
			within(t, 20*time.Millisecond, "a request after a cut", func() { node(t, l, "/n-") })
		}
		mu.Lock()
		dials = nil
		mu.Unlock()
		srv.Refuse(true)
		srv.Cut(0)
		time.Sleep(3 * timeout)
		mu.Lock()
		defer mu.Unlock()
		if n := len(dials); n < 20 || n > 80 {
			t.Errorf("%d attempts in 30s", n)
		}
		for i := range dials[2:] {
			if d := dials[i+1].Sub(dials[i]); i > 0 && d < 5*time.Millisecond || d > 2*time.Second {
				t.Errorf("attempt %d came %v after the one before", i+1, d)
			}
		}
	})
}

// A server that takes connections and does not answer leaves time for others.
func TestOneServerHangs(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		dead := zktest.Start(t, zktest.InMemory())
		dead.BlackHole(0, zktest.Both)
		for range 10 { // the client shuffles them
			cfg := config(srv)
			cfg.Servers = []string{dead.Addr(), srv.Addr()}
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == dead.Addr() {
					return dead.Dial(ctx, network, addr)
				}
				return srv.Dial(ctx, network, addr)
			}
			_, l := open(t, cfg)
			for range 3 {
				_, lost := holdNew(t, l)
				srv.Cut(0)
				time.Sleep(timeout)
				if lost.yet() {
					t.Fatalf("lost to %v", lost.cause)
				}
			}
		}
	})
}
