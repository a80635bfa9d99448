package fair_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/history"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
)

// 128 wait, over 8 sessions, of which three die: one before the lock is given up for
// the first time, one while others hold it, one while it holds the lock itself. All
// others get it, in the order in which they came.
func TestOrderOfArrivalWhileSessionsDie(t *testing.T) {
	const sessions, waiters = 8, 128
	const beforeAll, whileWaiting, whileHolding = 2, 4, 6 // these die
	e := ensemble.Three(t, ensemble.Options{})
	path := "/order"
	look := ensemble.Connect(t, 10*time.Second, e.Servers()...)
	opener := newLock(t, ensemble.Open(t, 30*time.Second, e.Servers()...), path)
	first := await.Grant(t, opener.Lock)

	var links []*link.Link
	var locks = make([]func() ticket, sessions)
	for i := range sessions {
		timeout := 30 * time.Second
		if i == beforeAll || i == whileWaiting || i == whileHolding {
			timeout = 3 * time.Second
		}
		l := link.New(t, e.Server(i%3))
		links = append(links, l)
		f := newLock(t, ensemble.Open(t, timeout, l.Addr()), path)
		locks[i] = func() ticket { return ticket{i, join(t, f)} }
	}
	var tickets []ticket
	for i := range waiters { // one after the other: that is the order
		tickets = append(tickets, locks[i%sessions]())
	}

	r := history.New(t)
	links[beforeAll].Hole()
	var (
		mu     sync.Mutex
		served []int
		last   recipes.Token
		wg     sync.WaitGroup
		died   = map[int]bool{beforeAll: true}
	)
	// serve notes a grant, and says whether its session dies now.
	serve := func(i int, g *recipes.Grant) (dies bool) {
		mu.Lock()
		defer mu.Unlock()
		served = append(served, i)
		if g.Token() <= last {
			t.Errorf("token %v came after %v", g.Token(), last)
		}
		last = g.Token()
		if len(served) == waiters/4 {
			died[whileWaiting] = true
			links[whileWaiting].Hole()
		}
		if len(served) > waiters/2 && i%sessions == whileHolding && !died[whileHolding] {
			died[whileHolding] = true
			links[whileHolding].Hole()
			return true
		}
		return false
	}
	ctx := await.Context(t)
	for i, ticket := range tickets {
		wg.Go(func() {
			g, err := r.Acquire(ctx, i, ticket.Wait)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if !died[ticket.session] || !errors.Is(err, recipes.ErrSessionLost) {
					t.Errorf("number %d, of session %d: %v", i, ticket.session, err)
				}
				return
			}
			if serve(i, g) {
				<-g.Done()
				return
			}
			time.Sleep(2 * time.Millisecond)
			if err := g.Release(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if !died[ticket.session] {
					t.Errorf("number %d, of session %d: %v", i, ticket.session, err)
				}
			}
		})
	}
	await.Release(t, first)
	wg.Wait()
	r.Check()

	got := make(map[int]bool)
	for k, i := range served {
		got[i] = true
		if k > 0 && i < served[k-1] {
			t.Errorf("number %d was served after number %d", i, served[k-1])
		}
	}
	for i, ticket := range tickets {
		if !got[i] && !died[ticket.session] {
			t.Errorf("number %d, of session %d, was not served", i, ticket.session)
		}
	}
	if len(died) != 3 || len(served) == waiters {
		t.Errorf("%d sessions died, and %d of %d were served: this proves nothing", len(died), len(served), waiters)
	}
	t.Logf("%d of %d served, in their order", len(served), waiters)
	nothingLeft(t, look, path)
}

type ticket struct {
	session int
	*fair.Ticket
}
