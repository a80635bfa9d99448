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

// The suite of all locks, on real servers and in real time. In virtual time it runs in
// package fallback.
func TestConformance(t *testing.T) {
	suite := redisconformance.Mutex(redisconformance.Backend{
		Start: func(t *testing.T) func() (net.Conn, error) {
			addr := redistest.Start(t).Addr()
			return func() (net.Conn, error) { return net.Dial("tcp", addr) }
		},
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(600 * time.Millisecond), fallback.Passes(0)},
	})
	suite.Run(t)
}
