package mutex_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
)

// What can't be right is refused before anything is sent.
func TestBadArguments(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		e.ResetCounts()
		for _, path := range []string{"", "/", "x", "/x/", "//x", "/x/../y", "/x/./y", "/zookeeper", "/zookeeper/x", "/x\x00", "/\xff"} {
			if m, err := mutex.New(s, path); m != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("path %q: %v, %v", path, m, err)
			}
		}
		if m, err := mutex.New(nil, "/x"); m != nil || !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("no session: %v, %v", m, err)
		}
		for _, opts := range [][]recipes.Option{
			{nil}, {recipes.Reentrant(), nil}, {recipes.Owner("")}, {recipes.MaxHold(0)}, {recipes.Extension(3)},
		} {
			if m, err := mutex.New(s, "/x", opts...); m != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%v: %v, %v", opts, m, err)
			}
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestContenders(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New(recipes.Owner("first"))
		if cs, err := m.Contenders(e.T.Context()); err != nil || len(cs) != 0 {
			t.Errorf("before anybody came: %v, %v", cs, err)
		}
		g := e.Lock(m)
		since := []time.Time{time.Now()}
		time.Sleep(time.Minute)
		second := e.Start(e.New(recipes.Owner("second")).Lock)
		since = append(since, time.Now())
		e.Queued(2)
		time.Sleep(time.Minute)
		queueForeign(e, foreignNames["Curator"], e.Open().ID())
		since = append(since, time.Now())
		third := e.Start(m.Lock)
		since = append(since, time.Now())
		e.Queued(4)
		cs, err := m.Contenders(e.T.Context())
		if err != nil || len(cs) != 4 {
			t.Fatalf("%v, %v", cs, err)
		}
		for i, want := range []recipes.Contender{
			{Owner: "first", Holding: true, Mine: true}, {Owner: "second"}, {Owner: "them"}, {Owner: "first", Mine: true},
		} {
			c := cs[i]
			if c.Owner != want.Owner || c.Holding != want.Holding || c.Mine != want.Mine || c.Kind != "lock" || c.ID == "" || !c.Since.Equal(since[i]) {
				t.Errorf("%d: %+v, since %v", i, c, since[i])
			}
			if i > 0 && c.Token <= cs[i-1].Token {
				t.Errorf("%d: token %v after %v", i, c.Token, cs[i-1].Token)
			}
		}
		if cs[0].Token != g.Token() {
			t.Errorf("token %v, the grant's is %v", cs[0].Token, g.Token())
		}
		e.Release(g)
		g = second.Grant(time.Second)
		if g.Token() != cs[1].Token {
			t.Errorf("granted with token %v, listed with %v", g.Token(), cs[1].Token)
		}
		e.Release(g)
		e.Delete(locktest.Path + "/" + cs[2].ID)
		e.Release(third.Grant(time.Second))
	})
}

// What others wrote is shown as far as it is text.
func TestOwnersOfOtherLibraries(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		id := e.Open().ID()
		datas := map[string]string{"10.0.0.7": "10.0.0.7", "": "", "\xff\x00": "", `{"host":"a"}`: `{"host":"a"}`, "17": "17", "null": "null"}
		want := map[string]string{}
		n := 0
		for data, owner := range datas {
			path := queueForeignData(e, n, data, id)
			want[path] = owner
			n++
		}
		cs, err := e.New().Contenders(e.T.Context())
		if err != nil || len(cs) != len(datas) {
			t.Fatalf("%v, %v", cs, err)
		}
		for _, c := range cs {
			if c.Owner != want[c.ID] {
				t.Errorf("owner %q, want %q", c.Owner, want[c.ID])
			}
		}
	})
}

func queueForeignData(e *locktest.Env, n int, data string, owner int64) (name string) {
	name = "_c_x-lock-000000000" + string(rune('0'+n))
	if err := e.CreateEphemeral(locktest.Path+"/"+name, []byte(data), owner); err != nil {
		e.T.Fatal(err)
	}
	return name
}

// A buffer for a logger that several goroutines write to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Logger hears of what no call returns: a lost place, a panic, a lock delay.
func TestLogger(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var log buffer
		logger := recipes.Logger(slog.New(slog.NewTextHandler(&log, nil)))
		m := e.New(logger, recipes.LockDelay(time.Second), recipes.OnRevoke(func(recipes.Revocation) { panic("ouch") }))
		g := e.Lock(m)
		a := e.Start(m.Lock)
		e.Queued(2)
		e.Delete(nodeOf(e, g))
		g = a.Grant(time.Minute)
		a = e.Start(m.Lock)
		e.Queued(2)
		for _, c := range e.Children(locktest.Path)[1:] {
			if !strings.HasPrefix(c, "delay-") {
				e.Delete(locktest.Path + "/" + c)
			}
		}
		time.Sleep(time.Second)
		e.Release(g)
		e.Release(a.Grant(time.Minute))
		for _, want := range []string{"ouch", "lock delay", "queueing again", locktest.Path} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is missing in\n%s", want, log.String())
			}
		}
	})
}

// Reentrant, through the lock itself: no request for the nested ones.
func TestReentrantLock(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := e.Mutex(s, recipes.Reentrant())
		g := e.Lock(m)
		ctx := g.Context(e.T.Context())
		e.ResetCounts()
		var nested []*recipes.Grant
		for _, lock := range []*mutex.Mutex{m, e.Mutex(s, recipes.Reentrant())} {
			n := e.StartContext(ctx, lock.Lock).Grant(time.Second)
			tried := e.StartContext(ctx, lock.TryLock).Grant(time.Second)
			nested = append(nested, n, tried)
			if n.Token() != g.Token() || tried.Token() != g.Token() {
				t.Error("another token")
			}
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		if g, err := m.Lock(over); g != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("nested under an ended context: %v, %v", g, err)
		}
		e.Release(g)
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		next := e.Start(e.New().Lock)
		for _, n := range nested {
			if !next.Pending() || n.Err() != nil {
				t.Errorf("given up too early: %v", n.Err())
			}
			e.Release(n)
		}
		e.Release(next.Grant(time.Second))
		// The context has ended with its grant, and says so.
		if _, err := m.Lock(ctx); !errors.Is(err, recipes.ErrReleased) {
			t.Errorf("under an ended grant's context: %v", err)
		}
	})
}

// Verify asks the quorum, not the server that it is connected to.
func TestVerifyIsCommitted(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New())
		zxid := e.Zxid()
		if err := g.Verify(e.T.Context()); err != nil || e.Zxid() == zxid {
			t.Errorf("%v; zxid %d, was %d", err, e.Zxid(), zxid)
		}
		e.Release(g)
	})
}
