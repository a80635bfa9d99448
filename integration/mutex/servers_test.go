package mutex_test

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
)

// Sessions that are long beside an election: what is held has to survive it.
const longSession = 30 * time.Second

// survives has one client hold the lock and another wait for it while something
// happens to the servers; the hold must not end by that, and the wait must end
// when the hold does.
func survives(t *testing.T, e *ensemble.Ensemble, happens func()) {
	t.Helper()
	path := e.LockPath(t)
	a := newMutex(t, ensemble.Open(t, longSession, e.Servers()...), path)
	b := newMutex(t, ensemble.Open(t, longSession, e.Servers()...), path)
	held := await.Grant(t, a.Lock)
	waiter := await.Later(t, b.Lock)
	await.InLine(t, a, 2)

	start := time.Now()
	happens()
	if err := held.Verify(await.Context(t)); err != nil {
		t.Fatalf("holder: %v", err)
	}
	t.Logf("held, by the word of the quorum, %v after the fault", time.Since(start))
	waiter.Waits(t)
	await.Release(t, held)
	t.Logf("released %v after the fault", time.Since(start))
	next := waiter.Grant(t)
	if next.Token() <= held.Token() {
		t.Errorf("token %v came after %v", next.Token(), held.Token())
	}
	await.Release(t, next)
}

func TestLeaderKilledWhileHeldAndWaitedFor(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	survives(t, e, func() { e.Kill(t, e.Leader(t)) })
}

func TestLeaderPausedWhileHeldAndWaitedFor(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	survives(t, e, func() { e.Pause(t, e.Leader(t)) })
}

// The servers to which the clients are connected stop one after the other, the
// others take over.
func TestEachServerPausedWhileHeldAndWaitedFor(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	survives(t, e, func() {
		for i := range e.Servers() {
			e.Pause(t, i)
			e.Leader(t)
			e.Unpause(t, i)
			e.WaitReady(t)
		}
	})
}

// The whole ensemble goes down and comes back.
func TestAllServersKilledWhileHeldAndWaitedFor(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	survives(t, e, func() {
		for i := range e.Servers() {
			e.Kill(t, i)
		}
		for i := range e.Servers() {
			e.Start(t, i)
		}
		e.WaitReady(t)
	})
}
