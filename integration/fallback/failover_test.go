package fallback_test

import (
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

// lostIn has a holder lose its lock in a failover, which happens after it was granted
// and before a replica had it. The next holder gets it; the first is told, and its
// late release leaves the next one's alone.
func lostIn(t *testing.T, a, b *fallback.Mutex, told chan recipes.Revocation, cut, failover func()) {
	t.Helper()
	before := await.Grant(t, a.Lock)
	await.Release(t, before)
	cut() // the replica gets nothing any more
	g := await.Grant(t, a.Lock)
	begun := time.Now()
	failover()
	second := await.Grant(t, b.Lock)
	rises(t, before, g, second)
	ended(t, g, recipes.ErrRevoked)
	t.Logf("told %v after the failover began: %v", time.Since(begun), g.Err())
	if r := <-told; r.Token != g.Token() {
		t.Errorf("told of %+v", r)
	}
	if err := g.Release(await.Context(t)); !errors.Is(err, recipes.ErrRevoked) {
		t.Errorf("late release: %v", err)
	}
	stands(t, second)
	await.Release(t, second)
	await.Release(t, await.Grant(t, a.Lock))
	if len(told) > 0 {
		t.Errorf("told again of %+v", <-told)
	}
}

// A master dies before its replica has the lock; somebody makes the replica the
// master. R56, R62
func TestFailoverByHand(t *testing.T) {
	t.Parallel() // it waits, most of the time
	p := redistest.StartPair(t)
	told := make(chan recipes.Revocation, 10)
	a := client(t, p.Addr(), fallback.TTL(3*time.Second), recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
	b := client(t, p.Addr(), fallback.TTL(3*time.Second))
	lostIn(t, a, b, told, p.Link.Hole, func() { p.Failover(t) })
	nothingLeft(t, p.Replica)
}

// The same, and the holder releases its lock before it was told. R09, R56
func TestReleaseAfterAFailover(t *testing.T) {
	t.Parallel() // it waits, most of the time
	p := redistest.StartPair(t)
	l := link.New(t, p.Addr())
	a, b := client(t, l.Addr(), fallback.TTL(time.Hour)), client(t, p.Addr(), fallback.TTL(time.Hour))
	p.Link.Hole()
	g := await.Grant(t, a.Lock)
	l.Hole()
	p.Failover(t)
	second := await.Grant(t, b.Lock)
	released := make(chan error, 1)
	go func() { released <- g.Release(await.Context(t)) }()
	l.Heal()
	if err := <-released; err != nil && !errors.Is(err, recipes.ErrRevoked) {
		t.Errorf("release: %v", err)
	}
	stands(t, second)
	await.Release(t, second)
	nothingLeft(t, p.Replica)
}

// Sentinels replace a master that died before its replica had the lock. R56, R60
func TestFailoverBySentinels(t *testing.T) {
	t.Parallel() // it waits, most of the time
	s := redistest.StartSentinels(t)
	told := make(chan recipes.Revocation, 10)
	connect := func(opts ...recipes.Option) *fallback.Mutex {
		rdb := redis.NewFailoverClient(s.Options())
		t.Cleanup(func() { rdb.Close() })
		return newMutex(t, open(t, rdb, append(opts, fallback.TTL(10*time.Second))...), key(t))
	}
	a, b := connect(recipes.OnRevoke(func(r recipes.Revocation) { told <- r })), connect()
	lostIn(t, a, b, told, func() { s.CutReplica(t) }, func() { s.Failover(t) })
	nothingLeft(t, s.Servers[1])
}

// A lock that its replica has survives the failover, and so does the line. R60
func TestReplicatedLockSurvivesAFailover(t *testing.T) {
	t.Parallel() // it waits, most of the time
	s := redistest.StartSentinels(t)
	// Sentinels that can't agree on who of them acts try again after 20 s.
	const ttl = time.Minute
	connect := func() *fallback.Mutex {
		rdb := redis.NewFailoverClient(s.Options())
		t.Cleanup(func() { rdb.Close() })
		return newMutex(t, open(t, rdb, fallback.TTL(ttl), fallback.WaiterTimeout(ttl), fallback.WaitReplicas(1, time.Second)), key(t))
	}
	a, b := connect(), connect()
	g := await.Grant(t, a.Lock)
	next := await.Later(t, b.Lock)
	await.InLine(t, a, 2)
	s.Servers[0].Do(t, "WAIT", 1, await.Patience.Milliseconds())
	s.Failover(t)
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	await.InLine(t, a, 2)
	// there is no replica now, so that the waiter can't have it confirmed
	await.Release(t, g)
	next.Fails(t, fallback.ErrNotReplicated)
	nothingLeft(t, s.Servers[1])
}

// The replica does not get the lock: it is given back. R57
func TestTooFewReplicas(t *testing.T) {
	t.Parallel() // it waits, most of the time
	p := redistest.StartPair(t)
	p.Master.Do(t, "WAIT", 1, await.Patience.Milliseconds()) // a replica that has just come does not acknowledge yet
	with := client(t, p.Addr(), fallback.WaitReplicas(1, 100*time.Millisecond))
	without := client(t, p.Addr())
	g := acknowledged(t, with)
	if n := len(standing(t, p.Replica)); n != 1 {
		t.Errorf("the replica has %d of the lock", n)
	}
	await.Release(t, g)
	p.WaitReplicated(t)

	p.Link.Hole()
	await.Release(t, await.Grant(t, without.Lock)) // does not ask
	if g, err := with.Lock(await.Context(t)); !errors.Is(err, fallback.ErrNotReplicated) {
		t.Fatalf("%v, %v", g, err)
	}
	nothingLeft(t, p.Master)
	p.Link.Heal()
	await.Release(t, acknowledged(t, with))
}

// acknowledged returns a grant that the replica has acknowledged in time, which a busy
// machine may miss.
func acknowledged(t *testing.T, m *fallback.Mutex) (g *recipes.Grant) {
	t.Helper()
	await.Until(t, "the replica to acknowledge", func() bool {
		var err error
		g, err = m.Lock(await.Context(t))
		if !errors.Is(err, fallback.ErrNotReplicated) {
			ok(t, err)
		}
		return err == nil
	})
	return g
}

// The replica is lost while the lock is held: renewals that nobody acknowledges do
// not count, and the grant ends by our own clock. R57
func TestReplicaIsLostWhileHeld(t *testing.T) {
	t.Parallel() // it waits, most of the time
	p := redistest.StartPair(t)
	m := client(t, p.Addr(), fallback.WaitReplicas(1, 50*time.Millisecond), fallback.TTL(time.Second))
	g := acknowledged(t, m)
	p.Link.Hole()
	ended(t, g, recipes.ErrSessionLost)
	nothingLeft(t, p.Master)
}
