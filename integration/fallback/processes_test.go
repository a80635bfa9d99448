package fallback_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// Nobody tells of a lock whose holder was killed, and the server itself does not
// notice that its time is over unless it is asked. R27
func TestHolderKilledOnAServerThatDoesNotExpire(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	s.StopExpiring(t)
	holder := startHolder(t, settings{Addr: s.Addr(), Key: key(t), TTL: time.Second, Live: time.Minute})
	ok(t, holder.Lock(await.Context(t)))
	m := client(t, s.Addr(), byTimer())
	next := await.Later(t, m.Lock)
	await.InLine(t, m, 2)
	holder.Kill()
	await.Release(t, next.Within(t, soon))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ten waiters ahead of the next live one were killed. They cost the time after which
// one counts as dead once, not ten times. R36, R39
func TestTenWaitersKilled(t *testing.T) {
	const live = 3 * time.Second
	s := redistest.Borrow(t)
	noneLeft(t, s)
	a, b := client(t, s.Addr(), fallback.WaiterTimeout(live)), client(t, s.Addr(), fallback.WaiterTimeout(live))
	g := await.Grant(t, a.Lock)
	waiters := startHolder(t, settings{Addr: s.Addr(), Key: key(t), TTL: time.Minute, Live: live})
	ask(t, waiters, "wait")
	await.InLine(t, a, 11)
	next := await.Later(t, b.Lock)
	await.InLine(t, a, 12)
	waiters.Kill()
	await.Release(t, g)
	begun := time.Now()
	got := next.Grant(t)
	if took := time.Since(begun); took > 5*live { // of 10 times that
		t.Errorf("the next was granted after %v", took)
	} else {
		t.Logf("the next was granted after %v", took)
	}
	await.Release(t, got)
}

// A holder is stopped for longer than its time, and goes on: the first look at its
// grant tells, before anything can be asked. Its late release harms nobody. R16
func TestHolderStoppedForLongerThanItsTime(t *testing.T) {
	s := redistest.Borrow(t)
	l := link.New(t, s.Addr())
	noneLeft(t, s)
	holder := startHolder(t, settings{Addr: l.Addr(), Key: key(t), TTL: time.Second, Live: time.Minute})
	ok(t, holder.Lock(await.Context(t)))
	if said := ask(t, holder, "err"); said != "<nil>" {
		t.Fatal(said)
	}
	var token recipes.Token
	fmt.Sscan(ask(t, holder, "token"), &token)
	holder.Pause(t)
	m := client(t, s.Addr())
	g := await.Grant(t, m.Lock)
	if g.Token() <= token {
		t.Errorf("token %v came after %v", g.Token(), token)
	}
	l.Hole() // so that it can't hear of it
	holder.Unpause(t)
	if said := ask(t, holder, "err"); said == "<nil>" {
		t.Error("the holder believes that it still has the lock")
	}
	l.Heal()
	if said := ask(t, holder, "release"); said == "released" {
		t.Error("the late release was answered with success")
	}
	stands(t, g)
	await.Release(t, g)
}
