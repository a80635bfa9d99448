package fallback_test

import (
	"net"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// pool returns what starts a server for a check of the suite: one of a few that are
// taken in turn and emptied.
func pool(t *testing.T) func(*testing.T) func() (net.Conn, error) {
	t.Helper()
	servers := redistest.StartSeveral(t, 4)
	free := make(chan *redistest.Server, len(servers))
	for _, s := range servers {
		free <- s
	}
	return func(t *testing.T) func() (net.Conn, error) {
		s := <-free
		t.Cleanup(func() {
			s.Do(t, "FLUSHALL")
			free <- s
		})
		return func() (net.Conn, error) { return net.Dial("tcp", s.Addr()) }
	}
}

// What the conformance suite sees in virtual time on a server in the process, it must
// see on a real one, too.
func TestMutexConformance(t *testing.T) {
	redisconformance.Mutex(redisconformance.Backend{
		Start:   pool(t),
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(time.Second), fallback.Passes(0)},
	}).Run(t)
}
