package fallback

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Goroutines of one client pass the lock on a bounded number of times, in order, each
// with a token of its own; then another client's turn comes.
func TestPasses(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		const passes = 3
		own, other := r.of(r.client(Passes(passes))), r.mutex()
		g := r.lock(own)
		stranger := r.start(other)
		var line []*attempt
		for range passes + 2 {
			line = append(line, r.start(own))
		}
		last := g.Token()
		for i, a := range line[:passes] {
			n := r.during(func() { r.release(g); g = a.grant() }, scripts...)
			if n != 0 {
				t.Errorf("pass %d: %d scripts", i, n)
			}
			if g.Token() <= last {
				t.Errorf("token %v after %v", g.Token(), last)
			}
			last = g.Token()
		}
		r.release(g)
		g = stranger.grant()
		if g.Token() <= last {
			t.Errorf("token %v after %v", g.Token(), last)
		}
		for _, a := range line[passes:] {
			select {
			case <-a.done:
				t.Error("passed on too often")
			default:
			}
		}
		r.release(g)
		for _, a := range line[passes:] {
			if g = a.grant(); g.Token() <= last {
				t.Errorf("token %v after %v", g.Token(), last)
			}
			last = g.Token()
			r.release(g)
		}
		if list := r.left(); len(list) > 0 {
			t.Errorf("left: %q", list)
		}
	})
}

// However few they are, those who hold for long don't keep others out by passing it on.
func TestPassesEndInTime(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		own := r.of(r.client(Passes(MaxPasses)))
		g := r.lock(own)
		stranger := r.start(r.mutex())
		second := r.start(own)
		time.Sleep(passesLast + time.Millisecond)
		r.release(g)
		r.release(stranger.grant())
		r.release(second.grant())
	})
}

// One that asks for other terms than the holder has them from the server.
func TestPassesOnlyOnTheSameTerms(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		g := r.lock(r.of(c))
		a := r.start(r.of(c, TTL(time.Hour)))
		r.release(g)
		if left := a.grant().Remaining(); left < 59*time.Minute {
			t.Errorf("%v remain of an hour", left)
		}
		r.release(a.g)
		g = r.lock(r.of(c))
		b := r.start(r.of(c, FixedLease()))
		r.release(g)
		b.grant()
		time.Sleep(time.Minute)
		wants(t, b.g.Err(), recipes.ErrSessionLost)
	})
}

// Visitors that give up at whatever moment neither lose the lock nor hold it up.
func TestVisitorsGiveUp(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		own := r.of(r.client())
		for range 100 {
			g := r.lock(own)
			var line []*attempt
			for range 4 {
				line = append(line, r.start(own))
			}
			// Released and cancelled at the same time.
			var wg sync.WaitGroup
			wg.Go(func() { g.Release(t.Context()) })
			for _, a := range line[:3] {
				wg.Go(a.cancel)
			}
			wg.Wait()
			for _, a := range line[:3] {
				<-a.done
				if a.err == nil {
					a.g.Release(t.Context())
				}
			}
			r.release(line[3].grant())
			synctest.Wait() // of those that came in, each has released
			last, err := own.TryLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.release(last)
		}
	})
}

// A loss between two of them is no grant for the second: it asks the server.
func TestLostBetweenPasses(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		m := r.of(c)
		g := r.lock(m)
		a := r.start(m)
		for _, h := range c.renewer.of(m.l) {
			h.mu.Lock()
			h.lost = errors.New("lost just now")
			h.mu.Unlock()
		}
		first := g.Token()
		g.Release(t.Context())
		if g = a.grant(); g.Token() <= first+DefaultPasses {
			t.Errorf("token %v is of the same hold as %v", g.Token(), first)
		}
		r.release(g)
	})
}
