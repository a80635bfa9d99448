package fallback_test

import (
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func startMini(t *testing.T) func() (net.Conn, error) {
	srv := miniredis.NewMiniRedis()
	srv.ClockTTL(true)
	t.Cleanup(srv.Close)
	return srv.Dial
}

// Each goroutine stands in line on the server.
func TestConformance(t *testing.T) {
	s := redisconformance.Mutex(redisconformance.Backend{
		Start: startMini, Virtual: true, Options: []recipes.Option{fallback.Passes(0)},
	})
	s.Run(t)
}

// Goroutines of one client queue in the process.
func TestConformanceWithPasses(t *testing.T) {
	s := redisconformance.Mutex(redisconformance.Backend{
		Start: startMini, Virtual: true, Visitors: fallback.Visitors,
	})
	s.Lacks = map[conformance.Capability]string{
		conformance.Order:      "goroutines of one client pass the lock on before others get it, a bounded number of times",
		conformance.Contenders: "those who queue in another process are not on the server",
	}
	s.Run(t)
}
