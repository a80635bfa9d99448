// Package redistest runs real Redis servers for tests, one or several of them in
// the usual arrangements, and does to them what happens to servers: they are
// killed and come back empty, stop for a while, fill up, forget their scripts,
// lose a write in a failover.
//
// All of them listen on 127.0.0.1 only, and end with the test. See [Require] for
// what they run in.
package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

func init() { logging.Disable() } // it says again what calls return, for each failed dial

// patience bounds what has to happen some time, such as the start of a server. It
// is there to say which wait never ended.
const patience = time.Minute

// Server is one Redis server, or one Sentinel. Its methods may be called from
// several goroutines, as long as no two of them do something to the server; those
// which take a testing.TB fail that test on an error, and so have to be called on
// the test's goroutine.
type Server struct {
	addr  string
	host  host
	admin *redis.Client
}

// Start starts one server with nothing in it, and waits until it serves. It skips
// or fails the test, as Require does, where that can't be done. The lines are
// added to its configuration file, as "maxmemory-policy allkeys-lru".
func Start(t testing.TB, lines ...string) *Server {
	t.Helper()
	return start(t, 1, func(int) []string { return lines })[0]
}

// StartSeveral starts n servers that know nothing of each other.
func StartSeveral(t testing.TB, n int, lines ...string) []*Server {
	t.Helper()
	return start(t, n, func(int) []string { return lines })
}

// start starts n servers at a time.
func start(t testing.TB, n int, lines func(i int) []string) []*Server {
	t.Helper()
	return launch(t, n, func(i int, port string) (config, error) {
		c := config{lines: append([]string{
			"port " + port,
			// nothing on disk: a server that is killed comes back empty
			`save ""`,
			"appendonly no",
			"enable-debug-command local",
			"repl-diskless-sync yes",
			"repl-diskless-sync-delay 0",
		}, lines(i)...)}
		return c, nil
	})
}

// launch starts n servers, each with a port of its own, and waits for them.
func launch(t testing.TB, n int, configure func(i int, port string) (config, error)) []*Server {
	t.Helper()
	newHost := Require(t)
	servers, errs := make([]*Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		port, err := docker.FreePort("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		c, err := configure(i, port)
		if err != nil {
			t.Fatal(err)
		}
		c.lines = append([]string{"bind 127.0.0.1", "daemonize no"}, c.lines...)
		dir := t.TempDir()
		wg.Go(func() {
			h, err := newHost(dir, c)
			if err != nil {
				errs[i] = err
				return
			}
			addr := net.JoinHostPort("127.0.0.1", port)
			servers[i] = &Server{addr: addr, host: h, admin: redis.NewClient(&redis.Options{
				Addr:            addr,
				Protocol:        2,
				DisableIdentity: true,
				MaxRetries:      -1,
				DialerRetries:   1,
				// what a server that is paused does not answer must end, too
				ContextTimeoutEnabled: true,
				PoolSize:              2,
			})}
			errs[i] = servers[i].serves()
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, s := range servers {
			if s != nil {
				wg.Go(func() { s.end(t) })
			}
		}
		wg.Wait()
	})
	for i, err := range errs {
		if err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
	}
	return servers
}

// serves waits until the server answers.
func (s *Server) serves() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := net.Dial("tcp", s.addr) // cheaper to fail than a client
		if err == nil {
			c.Close()
			err = s.admin.Ping(ctx).Err()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w; it said: %s", s.addr, err, s.host.log())
		case <-s.host.ended():
			return fmt.Errorf("%s has ended: it said: %s", s.addr, s.host.log())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) end(t testing.TB) {
	s.admin.Close()
	if t.Failed() {
		t.Logf("server %s, last lines of its log:\n%s", s.addr, s.host.log())
	}
	if err := s.host.remove(); err != nil {
		t.Errorf("server %s is left behind: %v", s.addr, err)
	}
}

// Addr returns the server's address, which stays the same when it is killed and
// started again.
func (s *Server) Addr() string { return s.addr }

// Client returns a client for the test's own use, with which it looks at the
// server and prepares what it finds. It is closed with the server.
func (s *Server) Client() *redis.Client { return s.admin }

// Do has the server carry out a command and returns what it answers.
func (s *Server) Do(t testing.TB, args ...any) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := s.admin.Do(ctx, args...).Result()
	if err != nil {
		t.Fatalf("%s: %v: %v", s.addr, args, err)
	}
	return v
}

// Kill ends the server with SIGKILL and returns when it is dead. What was in it
// is gone: Start starts it empty.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.host.kill(); err != nil {
		t.Fatalf("kill %s: %v", s.addr, err)
	}
}

// Start starts the server again after Kill, at the same address, and waits until
// it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.host.start(); err != nil {
		t.Fatalf("start %s: %v", s.addr, err)
	}
	if err := s.serves(); err != nil {
		t.Fatal(err)
	}
}

// Pause stops the server from running, as a machine that hangs: its connections
// stay open, new ones are accepted by the system, and nothing is answered. Time
// goes on for it. Unpause lets it go on; the end of the test does, too.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	if err := s.host.pause(); err != nil {
		t.Fatalf("pause %s: %v", s.addr, err)
	}
}

// Unpause lets the server go on after Pause.
func (s *Server) Unpause(t testing.TB) {
	t.Helper()
	if err := s.host.unpause(); err != nil {
		t.Fatalf("unpause %s: %v", s.addr, err)
	}
}

// await waits until what f looks for is there.
func await(t testing.TB, what string, f func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		ok, err := f(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s; last error: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// info returns the fields of a section of INFO.
func (s *Server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
