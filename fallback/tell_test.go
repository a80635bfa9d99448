package fallback

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// The waiter is told of its turn, and is there before it would have looked for itself.
func TestWaiterIsTold(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex())
		a := r.start(r.mutex())
		time.Sleep(time.Minute)
		at := time.Now()
		r.release(g)
		r.release(a.grant())
		if d := a.at.Sub(at); d > 0 {
			t.Errorf("after %v", d)
		}
	})
}

// The message is lost: the waiter finds out when it looks for itself. R26
func TestMessageIsLost(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex())
		a := r.start(r.mutex())
		time.Sleep(time.Minute)
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "PUBLISH" {
				p.WriteInt(0)
			}
			return cmd == "PUBLISH"
		})
		at := time.Now()
		r.release(g)
		r.release(a.grant())
		if d := a.at.Sub(at); d > DefaultWaiterTimeout/3 {
			t.Errorf("after %v", d)
		}
	})
}

// The lock is released before the subscription stands. R25
func TestReleasedBeforeTheSubscriptionStands(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		g := r.lock(r.mutex())
		stands := make(chan struct{})
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "SUBSCRIBE" {
				<-stands
			}
			return false
		})
		a := r.start(r.mutex(WaiterTimeout(MaxWaiterTimeout))) // it looks every 20s only
		r.release(g)                                           // nobody hears of it
		at := time.Now()
		close(stands)
		r.release(a.grant())
		if d := a.at.Sub(at); d > 0 {
			t.Errorf("%v after the subscription", d)
		}
	})
}

// A holder dies; the server removes keys only when they are touched, and nobody
// publishes anything. R27
func TestHolderDies(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.lock(r.mutex(FixedLease())) // its release will be refused
		var waiters []*attempt
		for range 3 {
			waiters = append(waiters, r.start(r.mutex()))
			time.Sleep(10 * time.Millisecond)
		}
		r.on(func(p *server.Peer, cmd string, args []string) bool { // the holder's leave
			if cmd == "EVALSHA" && args[0] == mutexKind.leave.hash {
				p.WriteError("NOPERM for a test")
				return true
			}
			return false
		})
		at := time.Now()
		time.Sleep(DefaultTTL)
		g := waiters[0].grant()
		if d := waiters[0].at.Sub(at); d < DefaultTTL-time.Second || d > DefaultTTL+30*time.Millisecond {
			t.Errorf("after %v", d)
		}
		r.on(nil)
		r.release(g)
		r.release(waiters[1].grant())
		r.release(waiters[2].grant())
	})
}

// Without messages, waiters poll; it is said once. R35
func TestNoMessages(t *testing.T) {
	for _, command := range []string{"PUBLISH", "SUBSCRIBE"} {
		t.Run(command, func(t *testing.T) {
			run(t, func(t *testing.T, r *rig) {
				r.refuse(command, "NOPERM this user has no permissions to access one of the channels used as arguments")
				a, b := r.client(), r.client()
				for range 3 {
					g := r.lock(r.of(a))
					next := r.start(r.of(b))
					time.Sleep(time.Minute)
					at := time.Now()
					r.release(g)
					r.release(next.grant())
					if d := next.at.Sub(at); command == "SUBSCRIBE" && d > 500*time.Millisecond || d > DefaultWaiterTimeout/3 {
						t.Errorf("after %v", d)
					}
				}
				if n := r.logged("no messages"); n != 1 {
					t.Errorf("%d warnings", n)
				}
				// Whoever has been refused does not rely on others being heard.
				g := r.lock(r.of(b))
				next := r.start(r.of(a))
				time.Sleep(time.Second)
				r.release(g)
				at := time.Now()
				r.release(next.grant())
				if d := next.at.Sub(at); command == "PUBLISH" && d > DefaultWaiterTimeout/3 {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}

// One connection for all that wait, and none when nobody has waited for a while. R28, R29
func TestSubscriptions(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		holder, waiter := r.client(), r.client()
		var grants []*recipes.Grant
		var waits []*attempt
		for i := range 100 {
			name := fmt.Sprint(i)
			h, _ := NewMutex(holder, name)
			w, _ := NewMutex(waiter, name)
			grants = append(grants, r.lock(h))
			waits = append(waits, r.start(w))
		}
		if list := r.PubSubChannels(""); len(list) != 1 {
			t.Errorf("%q", list)
		}
		for i := range grants {
			if i%3 == 0 {
				waits[i].cancel()
				<-waits[i].done
			}
			r.release(grants[i])
			if i%3 != 0 {
				r.release(waits[i].grant())
			}
		}
		time.Sleep(idleAfter + 2*time.Second)
		if list := r.PubSubChannels(""); len(list) != 0 {
			t.Errorf("nobody waits: %q", list)
		}
		g := r.lock(r.of(holder))
		a := r.start(r.of(waiter))
		time.Sleep(time.Second)
		r.release(g)
		r.release(a.grant())
		if list := r.left(); len(list) > 0 {
			t.Errorf("left: %q", list)
		}
	})
}

// A message that was on its way for longer than the claim lasts is no grant.
func TestMessageIsLate(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		p := &place{l: r.mutex().l, waits: true, touched: stamped()}
		claim := 3 * time.Second
		time.Sleep(time.Second)
		if tr, ok := p.enough(claim); !ok || tr.remaining() > 2*time.Second {
			t.Errorf("a third is gone: %v, %v", tr.remaining(), ok)
		}
		time.Sleep(time.Second)
		if tr, ok := p.enough(claim); ok {
			t.Errorf("two thirds are gone, and %v is left", tr.remaining())
		}
		p = &place{l: p.l, touched: stamped()}
		if _, ok := p.enough(claim); ok {
			t.Error("the server has not said yet that it waits")
		}
	})
}

// What can't be read is no message, and what comes for those who are gone is dropped.
func TestStrangeMessages(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		g := r.lock(r.mutex())
		a := r.start(r.of(c))
		id := c.id + "-1"
		rdb := r.redis()
		for _, text := range []string{"", " ", id, id + " 1", id + " x 1", id + " 1 x", id + " 1 1 x", strings.Repeat("x", 10000), c.id + "-zz 1 1000"} {
			if err := rdb.Publish(context.Background(), c.inboxes()+c.id, text).Err(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		select {
		case <-a.done:
			t.Fatalf("granted: %v, %v", a.g, a.err)
		default:
		}
		r.release(g)
		r.release(a.grant())
	})
}
