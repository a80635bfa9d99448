package fallback

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// slow has the next run of a script wait before it is carried out, and returns what lets
// it go on.
func (r *rig) slow(s *script) (goOn func()) {
	held := make(chan struct{})
	first := true
	r.on(func(p *server.Peer, cmd string, args []string) bool {
		if first && (cmd == "EVALSHA" || cmd == "EVAL") && (args[0] == s.hash || args[0] == s.source) {
			first = false
			<-held
		}
		return false
	})
	return func() { close(held); synctest.Wait() }
}

// A request that was given up reaches the server late: after what was sent to undo it. It
// is refused. R05
func TestRequestComesLate(t *testing.T) {
	for name, acquire := range map[string]func(*Mutex, context.Context) (*recipes.Grant, error){"Lock": (*Mutex).Lock, "TryLock": (*Mutex).TryLock} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, r *rig) {
				m, other := r.mutex(), r.mutex()
				r.release(r.lock(m)) // the scripts are known
				goOn := r.slow(mutexKind.acquire)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := acquire(m, ctx)
					ended <- err
				}()
				synctest.Wait()
				cancel()
				synctest.Wait() // without any time
				select {
				case err := <-ended:
					wants(t, err, context.Canceled)
				default:
					t.Fatal("waits for the server")
				}
				goOn()
				if r.Exists("lockkeeper:{x}:lock") || r.Exists("lockkeeper:{x}:mutex-queue") {
					t.Errorf("granted: %q", r.Keys())
				}
				g, err := other.TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				r.release(g)
				time.Sleep(2 * tomb)
				if keys := r.Keys(); len(keys) > 0 {
					t.Errorf("left: %q", keys)
				}
			})
		})
	}
}

// The lock was removed, and another has it: the release leaves it alone and says so. R09, R10
func TestReleaseOfWhatAnotherHas(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		a, b := r.mutex(), r.mutex()
		g := r.lock(a)
		r.Del("lockkeeper:{x}:lock")
		next := r.lock(b)
		err := g.Release(t.Context())
		wants(t, err, recipes.ErrRevoked)
		wants(t, err, recipes.ErrNodeDeleted)
		if err := next.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		r.release(next)
	})
}

// The release finds nothing to release, and still lets the next in. R40
func TestReleaseOfWhatIsGone(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex())
		a := r.start(r.mutex())
		time.Sleep(time.Minute + 100*time.Millisecond)
		r.Del("lockkeeper:{x}:lock")
		at := time.Now()
		wants(t, g.Release(t.Context()), recipes.ErrRevoked)
		r.release(a.grant())
		if d := a.at.Sub(at); d > 0 {
			t.Errorf("after %v", d)
		}
	})
}

// The lock is removed with waiters in line: the first has it within a second. R40, R12
func TestLockIsRemoved(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		told := make(chan time.Time, 2)
		r.lock(r.mutex(recipes.OnRevoke(func(rev recipes.Revocation) {
			wants(t, rev.Cause, recipes.ErrNodeDeleted)
			told <- time.Now()
		})))
		var line []*attempt
		for range 5 {
			line = append(line, r.start(r.mutex()))
		}
		time.Sleep(time.Minute)
		at := time.Now()
		r.Del("lockkeeper:{x}:lock")
		g := line[0].grant()
		if d := line[0].at.Sub(at); d > DefaultWaiterTimeout/3 {
			t.Errorf("after %v", d)
		}
		if d := (<-told).Sub(at); d > DefaultTTL/3+DefaultTTL/12 {
			t.Errorf("the holder was told after %v", d)
		}
		r.release(g)
		for _, a := range line[1:] {
			r.release(a.grant())
		}
	})
}

// The lock has no end, as if somebody had said PERSIST, or its end is not known: waiters
// neither wait for ever nor ask all the time. R42
func TestHolderWithoutEnd(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.lock(r.mutex(FixedLease()))
		if err := r.redis().Persist(t.Context(), "lockkeeper:{x}:lock").Err(); err != nil {
			t.Fatal(err)
		}
		r.refuse("DEL", "ERR for a test") // it is never released
		a := r.start(r.mutex())
		n := r.during(func() { time.Sleep(10 * time.Minute) }, scripts...)
		if n < 500 || n > 2500 { // and the release of the lost lock is tried again for 21s
			t.Errorf("%d scripts in 10m", n)
		}
		r.on(nil)
		r.Del("lockkeeper:{x}:lock")
		r.release(a.grant())
	})
}

// The server is away when the client is closed: Close says that it could not tell, and
// does not wait for ever.
func TestCloseWithoutAServer(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c, err := New(r.redis())
		if err != nil {
			t.Fatal(err)
		}
		g := r.lock(r.of(c))
		r.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory")
		begun := time.Now()
		if err := c.Close(); err == nil {
			t.Error("closed as if nothing were left")
		}
		if d := time.Since(begun); d > 2*DefaultTTL+5*time.Second {
			t.Errorf("took %v", d)
		}
		wants(t, g.Err(), recipes.ErrSessionClosed)
		r.on(nil)
		if list := r.left(); len(list) > 0 {
			t.Errorf("left: %q", list)
		}
		if err := c.Close(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if _, err := r.of(c).Lock(t.Context()); !errors.Is(err, recipes.ErrSessionClosed) {
			t.Error(err)
		}
	})
}

// Closing at whatever moment of a Lock leaves nothing.
func TestCloseDuringLock(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		other := r.mutex()
		r.release(r.lock(other))
		for _, held := range []bool{false, true} {
			c, err := New(r.redis())
			if err != nil {
				t.Fatal(err)
			}
			var g *recipes.Grant
			if held {
				g = r.lock(other)
			}
			goOn := r.slow(mutexKind.acquire)
			a := r.start(r.of(c))
			b := r.start(r.of(c)) // in the process
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			synctest.Wait()
			for _, a := range []*attempt{a, b} {
				<-a.done
				wants(t, a.err, recipes.ErrSessionClosed)
			}
			goOn()
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if held {
				r.release(g)
			}
			r.release(r.lock(other))
		}
		time.Sleep(2 * tomb)
		if keys := r.Keys(); len(keys) > 0 {
			t.Errorf("left: %q", keys)
		}
	})
}

// Fewer replicas than asked for: the lock is given back, and the error says so. R57, R10
func TestTooFewReplicas(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var acks atomic.Int64
		acks.Store(1)
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "WAIT" {
				p.WriteInt(int(acks.Load()))
			}
			return cmd == "WAIT"
		})
		m, other := r.mutex(WaitReplicas(1, 100*time.Millisecond)), r.mutex()
		r.release(r.lock(other)) // the scripts are known
		waits := func(n int, f func()) {
			t.Helper()
			if got := r.during(f, "WAIT"); got != n {
				t.Errorf("%d times WAIT, want %d", got, n)
			}
		}
		waits(1, func() { r.release(r.lock(m)) })
		g := r.lock(other)
		a := r.start(m)
		time.Sleep(time.Minute)
		waits(1, func() { // however long it has waited: only the grant
			r.release(g)
			r.release(a.grant())
		})
		acks.Store(0)
		for _, f := range []func(context.Context) (*recipes.Grant, error){m.Lock, m.TryLock} {
			_, err := f(t.Context())
			wants(t, err, ErrNotReplicated)
			synctest.Wait() // it is given back in the background
		}
		g = r.lock(other) // nothing was left behind
		a = r.start(m)
		r.release(g)
		<-a.done
		wants(t, a.err, ErrNotReplicated)
		acks.Store(1)
		g = r.lock(m)
		time.Sleep(time.Minute)
		acks.Store(0) // renewals that no replica has don't count
		<-g.Done()
		wants(t, g.Err(), recipes.ErrSessionLost)
		r.release(r.lock(other))
	})
}

// The server is away for longer than the TTL when a lock with a delay is released: it is
// given back when the server is there again, and not closed for the delay of a holder
// that died.
func TestReleaseOfALockWithADelayWhileTheServerIsAway(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m, other := r.mutex(recipes.LockDelay(time.Hour)), r.mutex()
		g := r.lock(m)
		r.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory")
		released := make(chan error, 1)
		go func() { released <- g.Release(t.Context()) }()
		time.Sleep(time.Minute)
		r.on(nil)
		if err := <-released; err != nil {
			t.Errorf("release: %v", err)
		}
		at := time.Now()
		a := r.start(other)
		r.release(a.grant())
		if d := a.at.Sub(at); d > DefaultWaiterTimeout/3 {
			t.Errorf("closed for %v", d)
		}
	})
}

// The server refuses for as long as the caller waits: the error has why Lock stopped, and
// what last went wrong. R10
func TestErrorHasBothReasons(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		m := r.mutex()
		r.refuse("EVALSHA", "LOADING Redis is loading the dataset in memory")
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		_, err := m.Lock(ctx)
		wants(t, err, enough)
		var e *recipes.Error
		if !errors.As(err, &e) || e.Reason != enough || e.LastErr == nil || fateOf(e.LastErr) != postponed {
			t.Errorf("%+v, want both", e)
		}
		r.on(nil)
	})
}
