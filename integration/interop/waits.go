package interop

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
)

// Waits returns when the contenders for the lock at dir, each on a session of its
// own, wait for another's node to go. It fails the test if one of them has the lock
// instead.
func Waits(t testing.TB, e *ensemble.Ensemble, dir string, contenders ...<-chan error) {
	t.Helper()
	for end := time.Now().Add(await.Patience); ; time.Sleep(5 * time.Millisecond) {
		for i, got := range contenders {
			select {
			case err := <-got:
				t.Fatalf("contender %d does not wait: %v", i, err)
			default:
			}
		}
		n := e.Waiting(t, dir)
		if n == len(contenders) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait at %s, want %d", n, dir, len(contenders))
		}
	}
}
