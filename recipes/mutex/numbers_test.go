package mutex_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const nearlyUsedUp = math.MaxInt32 - 1<<20

// case 54
func TestSequenceIsNearlyUsedUp(t *testing.T) {
	for _, next := range []int64{nearlyUsedUp, math.MaxInt32 - 7, math.MaxInt32} {
		locktest.Run(t, func(e *locktest.Env) {
			m := e.New()
			g := e.Lock(m)
			e.SetSequence(locktest.Path, next)
			// While somebody is in line, nobody more is let in.
			for range 3 {
				if _, err := e.New().Lock(e.T.Context()); !errors.Is(err, recipes.ErrExhausted) {
					t.Errorf("sequence at %d: %v", next, err)
				}
			}
			if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) && !errors.Is(err, recipes.ErrExhausted) {
				t.Error(err)
			}
			e.Release(g)
			e.Empty()
			// Once it has drained, the directory is made anew.
			token := g.Token()
			for range 3 {
				for _, m := range []recipes.Lockable{m, e.New()} {
					g := e.Lock(m)
					if g.Token() <= token {
						t.Errorf("token %v after %v", g.Token(), token)
					}
					token = g.Token()
					e.Release(g)
				}
			}
			if name := nodeName(e, m); !strings.Contains(name, "-lock-00000000") {
				t.Errorf("numbering has not begun anew: %s", name)
			}
		})
	}
}

// nodeName locks m for a moment and returns its node's name.
func nodeName(e *locktest.Env, m recipes.Lockable) string {
	g := e.Lock(m)
	defer e.Release(g)
	return nodeOf(e, g)
}

// case 54: a contender that did not know takes a number beyond the limit.
func TestSequenceWasUsedUpInTheMeantime(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.Release(e.Lock(m))
		e.SetSequence(locktest.Path, math.MaxInt32-2)
		if _, err := m.Lock(e.T.Context()); err != nil && !errors.Is(err, recipes.ErrExhausted) {
			t.Error(err)
		}
		e.Empty()
		e.Release(e.Lock(m))
	})
}

// case 54: a holder with a lock delay dies, and was the last that got a number.
func TestHolderWithLockDelayDiesAndTheSequenceIsUsedUp(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := e.New()
		e.Release(e.Lock(m))
		e.SetSequence(locktest.Path, nearlyUsedUp-1)
		g := e.Lock(e.Mutex(s, recipes.LockDelay(10*time.Second)))
		e.Expire(s.ID())
		<-g.Done()
		start := time.Now()
		for {
			g, err := m.Lock(e.T.Context())
			if err == nil {
				e.Release(g)
				break
			}
			if !errors.Is(err, recipes.ErrExhausted) {
				t.Error(err)
			}
			if time.Since(start) > time.Hour {
				e.T.Fatalf("still %v after an hour: %q", err, e.Children(locktest.Path))
			}
			time.Sleep(time.Second)
		}
		if d := time.Since(start); d < 10*time.Second {
			t.Errorf("granted %v after the death", d)
		}
	})
}

// case 54: others have gone on beyond the end, with numbers that are negative or
// come again.
func TestForeignNumbersBeyondTheEnd(t *testing.T) {
	for _, names := range [][]string{
		{"_c_a-lock-2147483647", "_c_b-lock-2147483647"},
		{"_c_a-lock--2147483648", "_c_b-lock--2147483647"},
	} {
		locktest.Run(t, func(e *locktest.Env) {
			other := e.Open()
			for _, n := range names {
				e.CreateEphemeral(locktest.Path+"/"+n, nil, other.ID())
			}
			e.SetSequence(locktest.Path, math.MaxInt32)
			m := e.New()
			if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) && !errors.Is(err, recipes.ErrExhausted) {
				t.Error(err)
			}
			if _, err := m.Lock(e.T.Context()); !errors.Is(err, recipes.ErrExhausted) {
				t.Error(err)
			}
			for _, n := range names {
				e.Delete(locktest.Path + "/" + n)
			}
			e.Release(e.Lock(m))
		})
	}
}

// case 56: the directory is reaped and made again between grants.
func TestTokensRiseOverNewDirectories(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		a, b := e.New(), e.New()
		for i := range 10 {
			m := a
			if i%2 == 0 {
				m = b
			}
			g := e.Lock(m)
			w.Saw(e.T, g)
			e.Release(g)
			switch i % 3 {
			case 0:
				time.Sleep(5 * time.Second) // reaped
				if e.Exists(locktest.Path) {
					t.Error("not reaped")
				}
			case 1:
				e.DeleteAll("/locks")
			}
		}
	}, zktest.ReapInterval(time.Second))
}

// A copy of another ensemble's data brings the record of an older numbering.
func TestDirectoryWasCopiedWithItsRecord(t *testing.T) {
	for _, released := range []int{0, 1, 3, 41} {
		locktest.Run(t, func(e *locktest.Env) {
			m := e.New()
			e.Release(e.Lock(m)) // so that a record of ours is there
			data, _ := e.Data(locktest.Path)
			record := strings.Replace(string(data), "released=0", fmt.Sprintf("released=%d", released), 1)
			e.DeleteAll(locktest.Path)
			e.Create(locktest.Path, []byte(record))
			var w locktest.Witness
			g := e.Lock(e.New())
			w.Saw(e.T, g)
			var waiting []*locktest.Attempt
			for i := range 6 {
				waiting = append(waiting, e.Start(e.New().Lock))
				e.Queued(i + 2)
			}
			for _, a := range waiting {
				time.Sleep(time.Second)
				if !a.Pending() {
					t.Fatalf("released=%d: granted while another holds", released)
				}
				e.Release(g)
				g = a.Grant(time.Second)
				w.Saw(e.T, g)
			}
			e.Release(g)
		})
	}
}

// case 60: a new leader gives numbers again that were given before.
func TestCounterGoesBack(t *testing.T) {
	for _, back := range []int64{0, 3, 8, 9, 10, 11, 12} {
		locktest.Run(t, func(e *locktest.Env) {
			var w locktest.Witness
			m := e.New()
			for range 9 { // released=8
				e.Release(e.Lock(m))
			}
			g := e.Lock(m) // 9
			w.Saw(e.T, g)
			next := e.Start(m.Lock) // 10
			e.Queued(2)
			e.SetSequence(locktest.Path, back)
			for range 15 {
				late := e.New()
				a := e.Start(late.Lock)
				time.Sleep(time.Second)
				if a.Pending() {
					a.Cancel()
				}
				if g, err := a.Result(); err == nil {
					t.Fatalf("back to %d: granted %v while another holds", back, g.Token())
				}
			}
			e.Release(g)
			g = next.Grant(time.Second)
			w.Saw(e.T, g)
			e.Release(g)
			for range 20 { // until the numbers are new again
				if g, err := m.Lock(e.T.Context()); err == nil {
					w.Saw(e.T, g)
					e.Release(g)
				} else if !errors.Is(err, recipes.ErrExhausted) {
					t.Error(err)
				}
			}
			e.Release(e.Lock(m))
			e.Empty()
		})
	}
}

// case 60: nothing in the record tells of the numbers between, since those gave up.
func TestCounterGoesBackBehindThoseWhoGaveUp(t *testing.T) {
	for back := range int64(13) {
		locktest.Run(t, func(e *locktest.Env) {
			var w locktest.Witness
			m := e.New()
			g := e.Lock(m) // 0
			w.Saw(e.T, g)
			for range 8 { // 1 to 8
				a := e.Start(m.Lock)
				e.Queued(2)
				a.Cancel()
				a.Result()
				e.Queued(1)
			}
			next := e.Start(m.Lock) // 9
			e.Queued(2)
			e.Release(g)
			g = next.Grant(time.Second)
			w.Saw(e.T, g)
			e.SetSequence(locktest.Path, back)
			for range 15 {
				a := e.Start(e.New().Lock)
				time.Sleep(time.Second)
				if a.Pending() {
					a.Cancel()
				}
				if g, err := a.Result(); err == nil {
					e.T.Fatalf("back to %d: granted %v while another holds", back, g.Token())
				}
			}
			e.Release(g)
			e.Empty()
		})
	}
}

// case 60: a name comes again, in one process, after its node was removed.
func TestNameComesAgainWhenTheCounterGoesBack(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 90 * time.Second} {
		// Not a minute: then the server looks for empty containers.
		locktest.Run(t, func(e *locktest.Env) {
			m := e.New()
			e.Release(e.Lock(m)) // released=0
			g := e.Lock(m)
			time.Sleep(after)
			name := nodeOf(e, g)
			e.Delete(name)
			e.SetSequence(locktest.Path, 1)
			again := e.Lock(m)
			if nodeOf(e, again) != name {
				e.T.Fatalf("%s, want %s once more", nodeOf(e, again), name)
			}
			time.Sleep(time.Second)
			if err := g.Err(); !errors.Is(err, recipes.ErrNodeDeleted) {
				t.Errorf("held for %v: two grants, the first one's Err is %v", after, err)
			}
			g.Release(e.T.Context())
			time.Sleep(time.Minute)
			if err := again.Err(); err != nil {
				t.Errorf("held for %v: the first one's end was the second one's: %v", after, err)
			}
			e.Release(again)
		})
	}
}
