// Package zkconformance runs the conformance suite on recipes for ZooKeeper: each
// check in a bubble of virtual time with a server of its own.
package zkconformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// New makes the lock under test.
type New func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error)

// Run runs the suite for the lock that new makes.
func Run(t *testing.T, suite conformance.Suite, new New) {
	suite.Backend = backend{new}
	suite.Run(t)
}

type backend struct{ new New }

// Run implements conformance.Backend.
func (b backend) Run(t *testing.T, name string, f func(*testing.T, conformance.World)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, b: b, srv: zktest.Start(t, zktest.InMemory(), zktest.AllowOpenSessions())}
			t.Cleanup(w.end)
			f(t, w)
		})
	})
}

type world struct {
	t       *testing.T
	b       backend
	srv     *zktest.Server
	clients []*client
}

// end checks that sessions are gone once their clients are closed, and those that
// were cut off have expired.
func (w *world) end() {
	w.srv.OnRequest(nil)
	w.srv.Heal()
	for _, c := range w.clients {
		c.sess.Close()
	}
	if !w.until(func(v *zktest.View) bool { return len(v.Sessions()) == 0 && v.Watches() == 0 }) {
		w.t.Errorf("sessions left: %+v, watches: %d", w.srv.Sessions(), w.srv.Watches())
	}
}

// until waits for a state of the server, and for what follows from it.
func (w *world) until(cond func(*zktest.View) bool) bool {
	synctest.Wait() // what is about to be sent counts, too
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	err := w.srv.WaitFor(ctx, cond)
	synctest.Wait()
	return err == nil
}

func path(lock string) string { return "/locks/" + lock }

// line returns the nodes of the contenders: those in the lock's queue, in its order,
// and then those who wait before the gate of a flow.
func line(v *zktest.View, lock string) []string {
	nodes := contenders(v, path(lock))
	for _, flow := range v.Children(path(lock) + ".flows") {
		nodes = append(nodes, contenders(v, path(lock)+".flows/"+flow+"/queue")...)
	}
	return nodes
}

// contenders are ephemeral; what else may be there is not.
func contenders(v *zktest.View, dir string) []string {
	var nodes []string
	for _, name := range v.Children(dir) {
		if st, _ := v.Stat(dir + "/" + name); st.EphemeralOwner != 0 {
			nodes = append(nodes, dir+"/"+name)
		}
	}
	slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	return nodes
}

// left returns what is there for a lock and doesn't go by itself.
func left(v *zktest.View, lock string) []string {
	nodes := v.Children(path(lock))
	for _, flow := range v.Children(path(lock) + ".flows") {
		for _, part := range []string{"queue", "line"} {
			nodes = append(nodes, v.Children(path(lock)+".flows/"+flow+"/"+part)...)
		}
	}
	return nodes
}

// number returns the ten digits at the end of a sequential node's name.
func number(name string) string { return name[max(0, len(name)-10):] }

// Client implements conformance.World.
func (w *world) Client() conformance.Client {
	s, err := session.Open(w.t.Context(), session.Config{Servers: []string{w.srv.Addr()}, Dial: w.srv.Dial})
	if err != nil {
		w.t.Fatal(err)
	}
	c := &client{w, s}
	w.clients = append(w.clients, c)
	return c
}

// Queued implements conformance.World.
func (w *world) Queued(lock string, n int) (string, bool) {
	var nodes []string
	ok := w.until(func(v *zktest.View) bool { nodes = line(v, lock); return len(nodes) == n })
	return fmt.Sprintf("%q", nodes), ok
}

// Empty implements conformance.World.
func (w *world) Empty(lock string) (string, bool) {
	var nodes []string
	ok := w.until(func(v *zktest.View) bool { nodes = left(v, lock); return len(nodes) == 0 })
	return fmt.Sprintf("%q", nodes), ok
}

// Settle implements conformance.World.
func (w *world) Settle() { synctest.Wait() }

// Pass implements conformance.World.
func (w *world) Pass(d time.Duration) { time.Sleep(d) }

// Patience implements conformance.World.
func (w *world) Patience() time.Duration { return 2 * time.Minute }

// Short implements conformance.World.
func (w *world) Short() time.Duration { return 20 * time.Second }

// Remove implements conformance.World.
func (w *world) Remove(lock string, i int) {
	var node string
	w.until(func(v *zktest.View) bool { node = line(v, lock)[i]; return true })
	if err := w.srv.Delete(node); err != nil {
		w.t.Error(err)
	}
}

// RemoveAll implements conformance.World.
func (w *world) RemoveAll(lock string) {
	for _, dir := range []string{path(lock), path(lock) + ".flows"} {
		var there bool
		w.until(func(v *zktest.View) bool { _, there = v.Stat(dir); return true })
		if !there {
			continue
		}
		if err := w.srv.DeleteAll(dir); err != nil {
			w.t.Error(err)
		}
	}
}

// Heal implements conformance.World.
func (w *world) Heal() { w.srv.Heal() }

type client struct {
	w    *world
	sess *session.Session
}

// Lock implements conformance.Client.
func (c *client) Lock(name string, opts ...recipes.Option) (conformance.Lock, error) {
	return c.w.b.new(c.sess, path(name), opts...)
}

// CutOff implements conformance.Client.
func (c *client) CutOff() { c.w.srv.BlackHole(c.sess.ID(), zktest.Both) }

// Lose implements conformance.Client.
func (c *client) Lose() error {
	c.w.srv.Expire(c.sess.ID()) // fails where there is none at the moment
	return recipes.ErrSessionLost
}

// OnStep implements conformance.Client.
func (c *client) OnStep(f func()) {
	if f == nil {
		c.w.srv.OnRequest(nil)
		return
	}
	c.w.srv.OnRequest(func(r zktest.Request) {
		if r.Session == c.sess.ID() && r.Op != zktest.OpPing {
			f()
		}
	})
}

// Close implements conformance.Client.
func (c *client) Close() error { return c.sess.Close() }
