package fallback

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// What the documentation says of the commands that are sent.
func TestCommands(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		a, b := r.client(), r.client()
		ma, mb := r.of(a, recipes.Reentrant()), r.of(b)
		g := r.lock(ma) // the server comes to know the scripts
		if err := g.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.release(g)
		expect := func(what string, want int, f func()) {
			t.Helper()
			if n := r.during(f, scripts...); n != want {
				t.Errorf("%s: %d scripts, want %d", what, n, want)
			}
		}
		expect("lock", 1, func() { g = r.lock(ma) })
		expect("nested", 0, func() {
			inner, err := ma.Lock(g.Context(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			r.release(inner)
		})
		expect("verify", 1, func() {
			if err := g.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
		expect("release", 1, func() { r.release(g) })
		expect("second release", 0, func() { r.release(g) })

		g = r.lock(ma)
		writes := []string{"SET", "ZADD", "ZREM", "ZREMRANGEBYSCORE", "PEXPIRE", "DEL", "PUBLISH"}
		try := func() {
			if _, err := mb.TryLock(t.Context()); err == nil {
				t.Error("granted")
			}
		}
		expect("try", 1, try)
		if n := r.during(try, writes...); n != 0 {
			t.Errorf("try of a busy lock: %d writes", n)
		}
		var waiter *attempt
		expect("queue", 2, func() { // and once more when the subscription stands, the first time
			waiter = r.start(mb)
		})
		expect("hand-over", 1, func() {
			r.release(g)
			g = waiter.grant()
		})
		for i := range 10 {
			want := 2
			if i == 0 {
				want++ // a subscribes for the first time
			}
			expect("queue and hand-over", want, func() {
				waiter = r.start(ma)
				r.release(g)
				g = waiter.grant()
			})
			ma, mb = mb, ma
		}
	})
}

// A waiter sends a command each third of the waiter time-out, whatever it waits for.
func TestCommandsOfAWaiter(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex(TTL(time.Hour)))
		a := r.start(r.mutex())
		n := r.during(func() { time.Sleep(10 * time.Minute) }, scripts...)
		if least, most := 600, 700; n < least || n > most {
			t.Errorf("%d scripts in 10m, want %d to %d", n, least, most)
		}
		r.release(g)
		r.release(a.grant())
	})
}
