package fallback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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

// renewals counts the scripts that renew, by the interval since now in which they come.
func (r *rig) renewals(interval time.Duration) (counts *sync.Map) {
	begun := time.Now()
	counts = new(sync.Map)
	r.on(func(p *server.Peer, cmd string, args []string) bool {
		if cmd == "EVALSHA" && args[0] == mutexKind.renew.hash {
			n, _ := counts.LoadOrStore(int(time.Since(begun)/interval), new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
		}
		return false
	})
	return counts
}

// Holds of one client are renewed together, once in each interval, whenever they were
// taken, and from the first interval on. R21
func TestRenewalInBatches(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		const locks, ttl = 1000, 3 * time.Second
		c := r.client()
		r.release(r.lock(r.of(c))) // the loop begins before the interval that is counted
		time.Sleep(ttl / 7)
		g := r.lock(r.of(c))
		time.Sleep(ttl) // and the server knows the script
		counts := r.renewals(ttl / 3)
		grants := holdMany(r, c, locks-1, TTL(ttl))
		time.Sleep(5 * ttl)
		sum := 0
		counts.Range(func(interval, n any) bool {
			got := int(n.(*atomic.Int32).Load())
			sum += got
			// the lock with another TTL goes by itself
			if want := locks/perScript + 1; got > want {
				t.Errorf("%d scripts in interval %v, want %d at most", got, interval, want)
			}
			return true
		})
		if sum < 14*locks/perScript {
			t.Errorf("%d scripts in 15 intervals", sum)
		}
		for _, g := range append(grants, g) {
			if g.Err() != nil || g.Remaining() < ttl/2 {
				t.Fatalf("%v, %v", g.Err(), g.Remaining())
			}
			r.release(g)
		}
		if n := r.during(func() { time.Sleep(10 * DefaultTTL) }, scripts...); n > 0 {
			t.Errorf("%d scripts when nothing is held", n)
		}
	})
}

// A server that is slow is not sent its renewals twice, as long as there is time.
func TestRenewalIsAnsweredLate(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		g := r.lock(r.of(c))
		time.Sleep(DefaultTTL)
		counts := r.renewals(time.Hour)
		hook := r.hook
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			hook(p, cmd, args)
			if cmd == "EVALSHA" {
				time.Sleep(DefaultTTL / 4)
			}
			return false
		})
		time.Sleep(10 * DefaultTTL)
		n, _ := counts.LoadOrStore(0, new(atomic.Int32))
		if got := n.(*atomic.Int32).Load(); got < 29 || got > 31 {
			t.Errorf("%d renewals in 30 intervals", got)
		}
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		r.on(nil)
		r.release(g)
	})
}

// The answer to a renewal never comes: it is sent again on another connection while there
// is time, and not more often than that needs.
func TestRenewalIsNotAnswered(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		rdb := redis.NewClient(&redis.Options{
			Dialer:                   func(context.Context, string, string) (net.Conn, error) { return r.dial() },
			ReadTimeout:              time.Hour, // no help from the Redis client
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer rdb.Close()
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		g := r.lock(r.of(c))
		time.Sleep(DefaultTTL)
		var sent atomic.Int32
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "EVALSHA" && args[0] == mutexKind.renew.hash {
				if sent.Add(1) <= 2 {
					time.Sleep(time.Minute)
				}
			}
			return false
		})
		time.Sleep(DefaultTTL)
		if g.Err() != nil || g.Remaining() < DefaultTTL/2 {
			t.Errorf("%v, %v remain after %d renewals", g.Err(), g.Remaining(), sent.Load())
		}
		time.Sleep(time.Minute)
		r.release(g)
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

// A lease without renewal ends when it is over. Its holder hears of it before. However
// long the wait was, the lease begins with the grant. R51
func TestFixedLease(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m := r.mutex(FixedLease(), TTL(time.Minute))
		for _, waits := range []bool{false, true} {
			var g *recipes.Grant
			if waits {
				before := r.lock(r.mutex())
				a := r.start(m)
				time.Sleep(time.Hour)
				n := r.during(func() { r.release(before); g = a.grant() }, scripts...)
				if n > 3 { // the release, its confirmation, and maybe a look at the time of the release
					t.Errorf("%d scripts: the wait has used up the lease", n)
				}
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

// The machine was suspended while a lock was held: whoever looks at the grant first is
// told, before any timer has run and without a word from the server. R16
func TestMachineIsSuspendedWhileALockIsHeld(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m := r.mutex()
		for name, look := range map[string]func(g *recipes.Grant) error{
			"Err":     (*recipes.Grant).Err,
			"Verify":  func(g *recipes.Grant) error { return g.Verify(t.Context()) },
			"Context": func(g *recipes.Grant) error { return context.Cause(g.Context(t.Context())) },
			"Remaining": func(g *recipes.Grant) error {
				if left := g.Remaining(); left > 0 {
					t.Errorf("%v remain", left)
				}
				return g.Err()
			},
		} {
			g := r.lock(m)
			for _, h := range m.l.c.renewer.of(m.l) {
				h.mu.Lock()
				h.trust.sent.wall = h.trust.sent.wall.Add(-DefaultTTL - suspended)
				h.mu.Unlock()
			}
			if err := look(g); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrSessionLost) {
				t.Errorf("%s: %v", name, err)
			}
			wants(t, g.Release(t.Context()), recipes.ErrRevoked)
			synctest.Wait()
		}
		h := &quorumHold{trust: trustFor(stamped(), DefaultTTL)}
		h.trust.sent.wall = h.trust.sent.wall.Add(-DefaultTTL - suspended)
		if left := h.Remaining(); left > 0 {
			t.Errorf("of a Redlock: %v remain", left)
		}
	})
}

// Of the TTL that the server counts, our own clock leaves out what the two may differ
// by: a hundredth, and 2ms. R15, R52
func TestTrustIsShorterThanTheTTL(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, DefaultTTL, MaxTTL} {
		if got, want := trustFor(stamped(), ttl).window, ttl-ttl/100-2*time.Millisecond; got != want {
			t.Errorf("%v of %v, want %v", got, ttl, want)
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

// The server forgets the scripts of a client that has its grants and renewals confirmed
// by replicas: they are sent again, together with the question for the replicas. R59
func TestScriptsAreFlushedOfThoseWhoWaitForReplicas(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m, admin := r.mutex(WaitReplicas(1, 100*time.Millisecond)), r.redis()
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "WAIT" {
				p.WriteInt(1)
			}
			return cmd == "WAIT"
		})
		for range 3 {
			g := r.lock(m)
			for range 3 { // before each renewal
				if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(DefaultTTL)
			}
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			r.release(g)
		}
	})
}

// Of a pipeline, the server knows some of the scripts only. Those are run once, the
// others are sent again, and each request gets its own answer. R59
func TestSomeScriptsOfAPipelineAreUnknown(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		m := r.of(c)
		l := m.l
		if err := r.redis().ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		g := r.lock(m) // the server knows this script, and no other
		list := query{l.kind.list, l.keys, nil}
		renew := func(id string) query { return query{l.kind.renew, l.renewKeys(), []any{id, 0}} }
		try := query{l.kind.acquire, l.keys, []any{opTry, c.inboxes(), 1000, 1000, l.member(c.newID(), exclusive)}}
		got := c.runAll(t.Context(), []query{list, try, renew("nobody"), try, renew(c.renewer.of(l)[0].id), list})
		for i, want := range []int64{1, isWaiting, 0, isWaiting, 1, 1} {
			if got[i].err != nil || number(got[i].reply, 0) != want {
				t.Errorf("%d: %v, %v; want %d first", i, got[i].reply, got[i].err, want)
			}
		}
		for i, want := range []int{6, 3, 1, 3, 1, 6} {
			if n := len(got[i].reply); n != want {
				t.Errorf("%d: %v is the answer to another request", i, got[i].reply)
			}
		}
		r.release(g)
	})
}
