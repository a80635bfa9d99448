package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// stock has the servers of this process that tests take one after the other.
var stock struct {
	sync.Mutex
	open bool // there is somebody who ends them
	free []*Server
	all  []*Server
	dirs []string
}

// Main runs the tests of a package that uses Borrow, and ends the servers that were
// borrowed. It returns the exit code.
func Main(m *testing.M) (code int) {
	stock.open = true
	defer func() {
		for _, s := range stock.all {
			if err := s.end(); err != nil {
				fmt.Fprintf(os.Stderr, "server %s is left behind: %v\n", s.addr, err)
				code = max(code, 1)
			}
		}
		for _, dir := range stock.dirs {
			os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// Borrow returns a server like that of Start, for the duration of the test. If another
// test is done with one, it is that: whatever the methods of Server did to it is
// undone, and nothing is on it. To start one takes longer than many a test.
func Borrow(t testing.TB) *Server {
	t.Helper()
	newHost := Require(t)
	s, err := take(newHost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.tell(t)
		if err := s.reset(); err != nil {
			t.Errorf("server %s can't be used again: %v", s.addr, err)
			return
		}
		stock.Lock()
		defer stock.Unlock()
		stock.free = append(stock.free, s)
	})
	return s
}

func take(newHost newHost) (*Server, error) {
	stock.Lock()
	defer stock.Unlock()
	if !stock.open {
		return nil, errors.New("redistest: the package's TestMain does not call redistest.Main")
	}
	if last := len(stock.free) - 1; last >= 0 {
		s := stock.free[last]
		stock.free = stock.free[:last]
		return s, nil
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	stock.dirs = append(stock.dirs, dir)
	port, err := docker.FreePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	s, err := newServer(newHost, dir, port, plain(port))
	if s != nil {
		stock.all = append(stock.all, s)
	}
	return s, err
}

// reset makes the server as if it had just been started.
func (s *Server) reset() error {
	if err := errors.Join(s.host.unpause(), s.serves()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	users, err := s.admin.Do(ctx, "ACL", "USERS").StringSlice()
	if err != nil {
		return err
	}
	commands := [][]any{
		{"REPLICAOF", "NO", "ONE"},
		{"CLIENT", "UNPAUSE"},
		{"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"},
		{"DEBUG", "SET-ACTIVE-EXPIRE", "1"},
		{"SCRIPT", "FLUSH", "SYNC"},
		{"FLUSHALL"},
		{"CONFIG", "RESETSTAT"},
	}
	for _, u := range users {
		if u != "default" {
			commands = append(commands, []any{"ACL", "DELUSER", u})
		}
	}
	for _, c := range commands {
		if err := s.admin.Do(ctx, c...).Err(); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
	}
	return nil
}
