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

// What the conformance suite sees in virtual time on a server in the process, it must
// see on a real one, too.
func TestMutexConformance(t *testing.T) {
	redisconformance.Mutex(redisconformance.Backend{
		Start:   borrowed,
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(time.Second), fallback.Passes(0)},
	}).Run(t)
}

// borrowed is how to connect to a server that is the test's own for a time.
func borrowed(t *testing.T) func() (net.Conn, error) {
	addr := redistest.Borrow(t).Addr()
	return func() (net.Conn, error) { return net.Dial("tcp", addr) }
}
