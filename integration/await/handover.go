package await

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// HandOver has a holder cut off, and waits for the next grant: by then the holder's
// must have ended, because it lost its session. It returns the next, and the lead: how
// long before that was granted the first was seen ended.
func HandOver(t testing.TB, held *recipes.Grant, next *Attempt, cut func()) (g *recipes.Grant, lead time.Duration) {
	t.Helper()
	ended := make(chan time.Time, 1)
	go func() {
		<-held.Done()
		ended <- time.Now()
	}()
	cut()
	start := time.Now()
	g = next.Grant(t)
	granted := time.Now()
	if held.Err() == nil {
		t.Errorf("token %v was granted while the holder that was cut off still had token %v", g.Token(), held.Token())
	}
	var end time.Time
	select {
	case end = <-ended:
	case <-time.After(Patience):
		t.Fatal("the grant of the holder that was cut off does not end")
	}
	t.Logf("holder's grant over %v after the cut, next grant after %v: lead %v", end.Sub(start), granted.Sub(start), granted.Sub(end))
	if err := held.Err(); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("holder's grant ended with %v", err)
	}
	if g.Token() <= held.Token() {
		t.Errorf("token %v came after %v", g.Token(), held.Token())
	}
	return g, granted.Sub(end)
}
