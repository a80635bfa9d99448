package fallback_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
)

func virtual() redisconformance.Backend {
	return redisconformance.Backend{Start: startMini, Virtual: true}
}

func TestConformanceOfRWLock(t *testing.T)    { redisconformance.RWLock(virtual()).Run(t) }
func TestConformanceOfSemaphore(t *testing.T) { redisconformance.Semaphore(virtual()).Run(t) }
func TestConformanceOfFair(t *testing.T)      { redisconformance.Fair(virtual()).Run(t) }
