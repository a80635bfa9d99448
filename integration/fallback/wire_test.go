package fallback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// script matches the requests by which locks are taken, given up and renewed.
var script = link.Containing("evalsha")

// linked returns a server, a link to it, the test's lock through the link, and the
// lock of another client beside it.
func linked(t *testing.T, opts ...recipes.Option) (s *redistest.Server, l *link.Link, near, other *fallback.Mutex) {
	t.Helper()
	s = redistest.Borrow(t)
	l = link.New(t, s.Addr())
	noneLeft(t, s)
	near, other = client(t, l.Addr(), opts...), client(t, s.Addr(), opts...)
	// the server has to know the scripts: what is lost below is not NOSCRIPT
	await.Release(t, await.Grant(t, other.Lock))
	g := await.Grant(t, other.Lock)
	if _, err := other.TryLock(await.Context(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Fatal(err)
	}
	await.Release(t, g)
	return s, l, near, other
}

// The server grants the lock and the answer is lost; go-redis, left alone, sends the
// request again. R01, R02
func TestAnswerToLockIsLost(t *testing.T) {
	s, l, m, other := linked(t)
	trap := l.LoseAnswer(script)
	before := s.Counts(t)
	g := await.Grant(t, m.Lock)
	<-trap.Sprung()
	stands(t, g)
	if n := s.Counts(t).Since(before).Of("del"); n > 0 {
		t.Error("what had been granted was given back, rather than taken for ours")
	}
	if _, err := other.TryLock(await.Context(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Fatalf("held by another, TryLock: %v", err)
	}
	await.Release(t, g) // once is enough
	await.Release(t, await.Grant(t, other.Lock))
}

// The same of a TryLock, which gives up rather than wait for news. R02
func TestAnswerToTryLockIsLost(t *testing.T) {
	s, l, m, other := linked(t)
	trap := l.LoseAnswer(script)
	g, err := m.TryLock(await.Context(t))
	<-trap.Sprung()
	if err == nil {
		stands(t, g)
		await.Release(t, g)
	}
	nothingLeft(t, s)
	await.Release(t, await.Grant(t, other.Lock))
}

// The answer to a release is lost, and the second request finds nothing. R07
func TestAnswerToReleaseIsLost(t *testing.T) {
	s, l, m, other := linked(t)
	g := await.Grant(t, m.Lock)
	trap := l.LoseAnswer(script)
	if err := g.Release(await.Context(t)); err != nil {
		t.Errorf("release: %v", err)
	}
	<-trap.Sprung()
	nothingLeft(t, s)
	await.Release(t, await.Grant(t, other.Lock))
}

// The context ends while the answer is on its way, by deadline or cancel. Lock must
// not wait for it, and what the server granted must go. R03, R04
func TestContextEndsBeforeTheAnswer(t *testing.T) {
	s, l, m, other := linked(t, fallback.TTL(time.Hour))
	for _, test := range []struct {
		name string
		end  func(ctx context.Context, sprung <-chan struct{}) context.Context
		want error
	}{
		{"Deadline", func(ctx context.Context, _ <-chan struct{}) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}, context.DeadlineExceeded},
		{"Cancel", func(ctx context.Context, sprung <-chan struct{}) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				<-sprung
				cancel()
			}()
			return ctx
		}, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			trap := l.HoldAnswer(script)
			got := await.Under(test.end(t.Context(), trap.Sprung()), m.Lock)
			got.Fails(t, test.want) // while the answer is still held
			nothingLeft(t, s)
			trap.Release()
			await.Release(t, await.Grant(t, other.Lock))
		})
	}
}

// The request itself comes late: after Lock has failed, and after whatever was sent
// to undo it. R05
func TestRequestComesAfterLockFailed(t *testing.T) {
	s, l, m, other := linked(t, fallback.TTL(time.Hour))
	trap := l.HoldRequest(script)
	ctx, cancel := context.WithCancel(t.Context())
	got := await.Under(ctx, m.Lock)
	<-trap.Sprung()
	cancel()
	got.Fails(t, context.Canceled)
	// The undoing is seen by what it leaves: without it, the request would be granted.
	await.Until(t, "the undoing of what may still come", func() bool { return len(s.Keys(t)) > 0 && len(standing(t, s)) == 0 && tombs(t, s) > 0 })
	counts := s.Counts(t)
	trap.Release()
	await.Until(t, "the late request", func() bool { return s.Counts(t).Since(counts).Of("evalsha") > 0 })
	if left := standing(t, s); len(left) > 0 {
		t.Errorf("the late request was granted: %q", left)
	}
	await.Release(t, await.Grant(t, other.Lock))
}

// tombs returns how many ids are barred.
func tombs(t *testing.T, s *redistest.Server) int {
	t.Helper()
	n := 0
	for _, k := range s.Keys(t) {
		if typ := s.Do(t, "TYPE", k); typ == "zset" {
			n += len(s.Do(t, "ZRANGE", k, 0, -1).([]any))
		}
	}
	return n
}

// A server that hangs: Lock fails, and when the server goes on it carries out what it
// was sent. R05
func TestServerHangsDuringLock(t *testing.T) {
	s, _, _, other := linked(t, fallback.TTL(time.Hour))
	m := client(t, s.Addr(), fallback.TTL(time.Hour))
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	await.Under(ctx, m.Lock).Fails(t, context.DeadlineExceeded)
	s.Unpause(t)
	nothingLeft(t, s)
	await.Release(t, await.Grant(t, other.Lock))
}

// R06
func TestReleaseUnderAnEndedContext(t *testing.T) {
	s, _, m, _ := linked(t, fallback.TTL(time.Hour))
	g := await.Grant(t, m.Lock)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("release: %v", err)
	}
	nothingLeft(t, s)
}

// Nothing gets through for less than the TTL, and then everything: the lock is still
// held, and is renewed. R19
func TestRenewalAfterASilence(t *testing.T) {
	s, l, m, _ := linked(t, fallback.TTL(3*time.Second))
	g := await.Grant(t, m.Lock)
	for _, fault := range []struct {
		name       string
		begin, end func()
	}{
		{"Hole", l.Hole, l.Heal},
		{"Refuse", l.Refuse, l.Heal},
		{"Pause", func() { s.Pause(t) }, func() { s.Unpause(t) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			renewed := func() bool { return pttl(t, s) > 2500 }
			await.Until(t, "a renewal", renewed)
			fault.begin()
			time.Sleep(1500 * time.Millisecond) // the fault
			fault.end()
			await.Until(t, "a renewal after the fault", renewed)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
	await.Release(t, g)
}

// pttl returns what is left of the lock on the server, in ms.
func pttl(t *testing.T, s *redistest.Server) (ms int64) {
	t.Helper()
	for _, k := range s.Keys(t) {
		if s.Do(t, "TYPE", k) == "string" && !isToken(k) {
			ms, _ = s.Do(t, "PTTL", k).(int64)
		}
	}
	return ms
}

// Renewals that are never answered end the grant by our own clock, before the server
// gives the lock to another. R15, R20
func TestSilenceEndsTheGrantFirst(t *testing.T) {
	for _, test := range []struct {
		name string
		cut  func(*link.Link)
	}{
		{"Hole", (*link.Link).Hole},
		{"HoleUp", (*link.Link).HoleUp},
		{"HoleDown", (*link.Link).HoleDown},
		{"Refuse", (*link.Link).Refuse},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			told := make(chan recipes.Revocation, 10)
			_, l, m, other := linked(t, fallback.TTL(time.Second),
				recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
			g := await.Grant(t, m.Lock)
			next := await.Later(t, other.Lock)
			await.InLine(t, other, 2)
			second, _ := await.HandOver(t, g, next, func() { test.cut(l) })
			if r := <-told; !errors.Is(r.Cause, recipes.ErrSessionLost) || r.Token != g.Token() {
				t.Errorf("told of %+v", r)
			}
			if err := g.Release(await.Context(t)); !errors.Is(err, recipes.ErrRevoked) {
				t.Errorf("late release: %v", err)
			}
			l.Heal() // whatever was held back arrives now
			for range 3 {
				stands(t, second)
			}
			await.Release(t, second)
			await.Release(t, await.Grant(t, m.Lock))
			if len(told) > 0 {
				t.Errorf("told again of %+v", <-told)
			}
		})
	}
}

// go-redis closes a connection that is not answered in time; a client with short
// time-outs must not take a slow server for one that has nothing.
func TestShortReadTimeout(t *testing.T) {
	s, l, _, other := linked(t)
	rdb := redis.NewClient(&redis.Options{Addr: l.Addr(), ReadTimeout: 50 * time.Millisecond, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	m := newMutex(t, open(t, rdb), key(t))
	traps := []*link.Trap{l.HoldAnswer(script), l.HoldAnswer(script), l.HoldAnswer(script)}
	g := await.Grant(t, m.Lock)
	for _, trap := range traps {
		<-trap.Sprung()
	}
	stands(t, g)
	await.Release(t, g)
	l.Heal()
	nothingLeft(t, s)
	await.Release(t, await.Grant(t, other.Lock))
}
