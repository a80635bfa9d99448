package truth

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/internal/rawzk"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// expiry compares what others are told of a session that expires, and what it is
// told itself when it comes back.
func (s servers) expiry(t *testing.T) {
	both(t, s, func(addr string) []string {
		p := &player{t: t, addr: addr, root: "/expiry", clients: map[string]*client{}, names: []string{"a", "b"}, note: newNotes("/expiry")}
		defer p.hangUp()
		b := p.open("b")
		c := &client{Client: rawzk.New(p.dial()), up: true}
		if err := c.Hello(1); err != nil {
			t.Fatal(err)
		}
		p.clients["a"], p.note.sessions[c.ID] = c, "a"
		var record []string
		for _, st := range (script{
			{"b", zktest.OpCreate, "~", none, world, persistent},
			{"a", zktest.OpCreate, "~/x", none, world, ephemeral}, {"a", zktest.OpCreate, "~/y", none, world, ephemeral},
			{"a", zktest.OpCreate, "~/lock-", none, world, ephemeralSequential},
			{"b", zktest.OpAddWatch, "~", 1}, {"b", zktest.OpGetChildren, "~", true}, {"b", zktest.OpExists, "~/y", true},
			{"a", drop},
		}) {
			record = append(record, withoutZxids(p.step(st)))
		}
		for len(b.Events) < 3+1 { // the three, and the list of the children
			if _, err := b.Next(); err != nil {
				t.Fatal(err)
			}
		}
		return append(record, p.note.events(b), p.step(step{"a", resume}), p.step(step{"b", zktest.OpCloseSession}))
	})
}

// What the server removes by itself: containers that have been used, and nodes
// past their time.
func TestReaping(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{ContainerCheck: 300 * time.Millisecond})
	requireVersion(t, e.Server(0))
	s := servers{real: e.Server(0), ours: zktest.Start(t, zktest.ReapInterval(300*time.Millisecond)).Addr()}
	both(t, s, func(addr string) []string {
		p := &player{t: t, addr: addr, root: "/r", clients: map[string]*client{}, names: []string{"a"}, note: newNotes("/r")}
		defer p.hangUp()
		a := p.open("a")
		var record []string
		do := func(st step) { record = append(record, withoutZxids(p.step(st))) }
		reaped := func(n int) {
			t.Helper()
			for len(a.Events) < n {
				if _, err := a.Next(); err != nil {
					t.Fatal(err)
				}
			}
			record = append(record, withoutZxids(p.note.events(a)))
		}
		do(step{"a", zktest.OpCreate, "~", none, world, persistent})
		for _, path := range []string{"~/used", "~/unused", "~/full"} {
			do(step{"a", zktest.OpCreateContainer, path, none, world, container})
		}
		do(step{"a", zktest.OpCreate, "~/full/x", none, world, persistent})
		do(step{"a", zktest.OpCreateTTL, "~/full/long", none, world, ttl, int64(3_600_000)})
		do(step{"a", zktest.OpCreate, "~/used/x", none, world, persistent})
		do(step{"a", zktest.OpAddWatch, "~/used", 0})
		do(step{"a", zktest.OpDelete, "~/used/x", anyVersion})
		a.Events = nil
		reaped(1)
		do(step{"a", zktest.OpAddWatch, "~/full/ttl", 0})
		do(step{"a", zktest.OpCreateTTL, "~/full/ttl", none, world, ttl, int64(100)})
		a.Events = nil
		reaped(1)
		do(step{"a", zktest.OpGetChildren, "~", false})
		do(step{"a", zktest.OpGetChildren, "~/full", false})
		return append(record, p.step(step{"a", zktest.OpCloseSession}))
	})
}
