package fallback

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// holdMany takes n locks, not all at the same time.
func holdMany(r *rig, c *Client, n int, opts ...recipes.Option) []*recipes.Grant {
	r.t.Helper()
	var grants []*recipes.Grant
	for i := range n {
		m, err := NewMutex(c, fmt.Sprint("lock ", i), opts...)
		if err != nil {
			r.t.Fatal(err)
		}
		grants = append(grants, r.lock(m))
		time.Sleep(time.Millisecond)
	}
	return grants
}

// Holds of one client are renewed together, whenever they were taken. R21
func TestRenewalInBatches(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		grants := holdMany(r, c, 400)
		time.Sleep(DefaultTTL)
		n := r.during(func() { time.Sleep(5 * DefaultTTL) }, scripts...)
		if intervals := 16; n > 4*intervals {
			t.Errorf("%d scripts in %d intervals", n, intervals)
		}
		for _, g := range grants {
			if g.Err() != nil || g.Remaining() < DefaultTTL/2 {
				t.Fatalf("%v, %v", g.Err(), g.Remaining())
			}
			r.release(g)
		}
		if n := r.during(func() { time.Sleep(10 * DefaultTTL) }, scripts...); n > 0 {
			t.Errorf("%d scripts when nothing is held", n)
		}
	})
}

// Different times to live don't disturb each other much, and none is renewed late.
func TestRenewalOfDifferentTTLs(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		long := holdMany(r, c, 1, TTL(time.Minute))[0]
		m := r.of(c, TTL(time.Second))
		short := r.lock(m)
		n := r.during(func() { time.Sleep(2 * time.Minute) }, "PEXPIRE")
		if want := 360; n < want || n > want*5/4 { // and 6 to 12 of the long one
			t.Errorf("%d renewals, want about %d", n, want)
		}
		for _, g := range []*recipes.Grant{long, short} {
			if g.Err() != nil {
				t.Error(g.Err())
			}
			r.release(g)
		}
	})
}

// A cluster behind a plain client: the first batch is refused, the next go slot by slot.
func TestRenewalAcrossSlots(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		refused := 0
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if (cmd == "EVALSHA" || cmd == "EVAL") && args[0] == mutexKind.renew.hash && args[1] != "1" {
				refused++
				p.WriteError("CROSSSLOT Keys in request don't hash to the same slot")
				return true
			}
			return false
		})
		grants := holdMany(r, c, 50)
		time.Sleep(10 * DefaultTTL)
		if refused == 0 || refused > 3 {
			t.Errorf("%d batches were refused", refused)
		}
		for _, g := range grants {
			if g.Err() != nil {
				t.Fatal(g.Err())
			}
			r.release(g)
		}
	})
}

// Renewals fail for less than the time to live. R19
func TestRenewalFailsForAWhile(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex())
		for _, text := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "ERR whatever", "NOPERM"} {
			time.Sleep(DefaultTTL)
			r.refuse("EVALSHA", text+" for a test")
			time.Sleep(DefaultTTL / 2)
			r.on(nil)
		}
		time.Sleep(DefaultTTL)
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		r.release(g)
	})
}

// Renewals fail for ever: the grant ends by our own clock, once, before the server gives
// the lock to another. R15, R20
func TestRenewalFailsForEver(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		told := make(chan time.Time, 10)
		g := r.lock(r.mutex(recipes.OnRevoke(func(rev recipes.Revocation) {
			if !errors.Is(rev.Cause, recipes.ErrSessionLost) {
				t.Error(rev.Cause)
			}
			told <- time.Now()
		})))
		time.Sleep(time.Minute)
		r.refuse("EVALSHA", "READONLY You can't write against a read only replica.")
		<-g.Done()
		if ms := r.TTL("lockkeeper:{x}:lock"); ms <= 0 {
			t.Error("the server had given it up before")
		}
		if at := <-told; time.Since(at) > 0 {
			t.Error("told late")
		}
		time.Sleep(time.Minute)
		r.on(nil)
		r.release(r.lock(r.mutex()))
		if len(told) > 0 {
			t.Error("told twice")
		}
	})
}

// A lease without renewal ends when it is over. Its holder hears of it before.
func TestFixedLease(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m := r.mutex(FixedLease(), TTL(time.Minute))
		for _, waits := range []bool{false, true} {
			var g *recipes.Grant
			if waits {
				before := r.lock(r.mutex())
				a := r.start(m)
				time.Sleep(time.Hour)
				r.release(before)
				g = a.grant()
			} else {
				g = r.lock(m)
			}
			if left := g.Remaining(); left < 59*time.Second || left > time.Minute {
				t.Errorf("%v remain of a minute", left)
			}
			begun := time.Now()
			n := r.during(func() { time.Sleep(50 * time.Second) }, "PEXPIRE")
			if err := g.Verify(t.Context()); err != nil || n > 0 {
				t.Errorf("renewed %d times; %v", n, err)
			}
			<-g.Done()
			if d := time.Since(begun); d > time.Minute {
				t.Errorf("lasted %v", d)
			}
			wants(t, g.Err(), recipes.ErrSessionLost)
			r.release(r.lock(r.mutex()))
		}
	})
}

// Trust counts from before the request was sent, however long the answer took. R15
func TestSlowAnswer(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m := r.mutex(FixedLease())
		r.release(r.lock(m))
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "EVALSHA" {
				time.Sleep(2 * time.Second)
			}
			return false
		})
		begun := time.Now()
		g := r.lock(m)
		if left := g.Remaining(); left > DefaultTTL-time.Since(begun) {
			t.Errorf("%v remain", left)
		}
		r.release(g)
	})
}

// Clocks that differ by more than a second since the stamp: the machine was suspended,
// and what the monotonic clock has not counted counts. R16
func TestSuspendedMachine(t *testing.T) {
	for _, test := range []struct{ mono, wall, want time.Duration }{
		{time.Minute, time.Minute, time.Minute},
		{time.Minute, time.Minute + suspended, time.Minute},     // a clock that was adjusted
		{time.Minute, time.Hour, time.Hour},                     // suspended
		{time.Minute, -time.Hour, time.Minute},                  // a clock that was set back
		{time.Minute, time.Minute - time.Second/2, time.Minute}, // the same
		{0, time.Minute, time.Minute},                           // suspended at once
		{time.Minute, time.Minute + 2*suspended, time.Minute + 2*suspended},
	} {
		if got := longer(test.mono, test.wall); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// SCRIPT FLUSH between any two requests, and during renewals. R59
func TestScriptsAreFlushed(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		a, b := r.mutex(), r.mutex()
		admin := r.redis()
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "EVALSHA" {
				p.WriteError("NOSCRIPT No matching script. Please use EVAL.")
			}
			return cmd == "EVALSHA"
		})
		for range 3 {
			g := r.lock(a)
			next := r.start(b)
			time.Sleep(time.Minute)
			if err := g.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if list, err := a.Contenders(t.Context()); len(list) != 2 || err != nil {
				t.Errorf("%+v, %v", list, err)
			}
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			r.release(g)
			g = next.grant()
			time.Sleep(time.Minute)
			r.release(g)
		}
	})
}
