package fallback

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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

// waitsFor has a client wait for so many locks that another holds, each waiter looking
// for itself every 20s only, and returns what releases all of them, and the waits.
func (r *rig) waitsFor(c *Client, n int) (release func(), waits []*attempt) {
	r.t.Helper()
	holder := r.client()
	var grants []*recipes.Grant
	for i := range n {
		h, err1 := NewMutex(holder, fmt.Sprint(i), TTL(time.Hour))
		w, err2 := NewMutex(c, fmt.Sprint(i), WaiterTimeout(MaxWaiterTimeout))
		if err1 != nil || err2 != nil {
			r.t.Fatal(err1, err2)
		}
		grants = append(grants, r.lock(h))
		waits = append(waits, r.start(w))
	}
	return func() {
		for _, g := range grants {
			r.release(g)
		}
	}, waits
}

// The subscription breaks, and several locks are released before it stands again: every
// one of those who wait looks for itself as soon as it does. R26
func TestSubscriptionBreaksWhileManyWait(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var peer *server.Peer
		again := make(chan struct{})
		first := true
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd != "SUBSCRIBE" {
				return false
			}
			if first {
				first, peer = false, p
				return false
			}
			<-again
			return false
		})
		c := r.client()
		release, waits := r.waitsFor(c, 5)
		time.Sleep(time.Second)
		peer.Close()
		synctest.Wait()
		release() // nobody hears of it
		time.Sleep(time.Second)
		at := time.Now()
		close(again)
		for i, a := range waits {
			r.release(a.grant())
			if d := a.at.Sub(at); d > 0 {
				t.Errorf("waiter %d: %v after the subscription", i, d)
			}
		}
	})
}

// A mute is a connection on which nothing comes any more, though it stands, when it has
// been silenced.
type mute struct {
	net.Conn
	mu         sync.Mutex
	subscribes bool
	silent     bool
}

func (c *mute) Write(p []byte) (int, error) {
	if strings.Contains(strings.ToLower(string(p)), "subscribe") {
		c.mu.Lock()
		c.subscribes = true
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *mute) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		c.mu.Lock()
		drop := err == nil && c.silent
		c.mu.Unlock()
		if !drop {
			return n, err
		}
	}
}

// Nothing comes over the subscription any more, and nobody says so. It is made anew
// after a few seconds, and then all look. As long as there are signs of life it is left
// as it is, however quiet. R26
func TestSubscriptionGoesSilent(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var conns []*mute
		rdb := redis.NewClient(&redis.Options{
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				conn, err := r.dial()
				mu.Lock()
				defer mu.Unlock()
				conns = append(conns, &mute{Conn: conn})
				return conns[len(conns)-1], err
			},
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer rdb.Close()
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		release, waits := r.waitsFor(c, 3)
		if n := r.during(func() { time.Sleep(10 * time.Minute) }, "SUBSCRIBE"); n > 0 {
			t.Errorf("subscribed anew %d times", n)
		}
		mu.Lock()
		for _, conn := range conns {
			conn.mu.Lock()
			conn.silent = conn.subscribes
			conn.mu.Unlock()
		}
		mu.Unlock()
		release()
		at := time.Now()
		for i, a := range waits {
			r.release(a.grant())
			if d := a.at.Sub(at); d > deadAfter+time.Second {
				t.Errorf("waiter %d: after %v", i, d)
			}
		}
		channel := c.inboxes() + c.id
		if n := r.PubSubNumSub(channel)[channel]; n != 1 { // the silent one was given up
			t.Errorf("%d subscriptions", n)
		}
		at = time.Now()
		if err := c.Close(); err != nil || time.Since(at) > 0 { // and what looked after it
			t.Errorf("close took %v: %v", time.Since(at), err)
		}
	})
}

// Publishing or subscribing was refused, and is allowed again: after a while waiters are
// told as before. R29
func TestMessagesAreAllowedAgain(t *testing.T) {
	for _, command := range []string{"PUBLISH", "SUBSCRIBE"} {
		t.Run(command, func(t *testing.T) {
			run(t, func(t *testing.T, r *rig) {
				r.refuse(command, "NOPERM this user has no permissions to access one of the channels used as arguments")
				a, b := r.client(), r.client()
				for range 2 {
					g := r.lock(r.of(a))
					next := r.start(r.of(b))
					time.Sleep(time.Second)
					at := time.Now()
					r.release(g)
					r.release(next.grant())
					if d := next.at.Sub(at); d > 0 && r.hook == nil {
						t.Errorf("told after %v", d)
					}
					r.on(nil)
					time.Sleep(2 * deafRepeat)
				}
			})
		})
	}
}

// Somebody begins to wait at the moment when the reader, which nobody had needed, comes
// to its end: it has a subscription.
func TestWaiterComesWhenTheSubscriptionEnds(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		b := c.inbox
		b.open = true // there is a reader, and this is the last that it does
		if b.wanted() {
			t.Fatal("nobody waits")
		}
		b.register("somebody")
		b.listen()
		time.Sleep(time.Second)
		if list := r.PubSubChannels(""); len(list) != 1 {
			t.Errorf("%q, want the inbox", list)
		}
		b.forget("somebody")
	})
}
