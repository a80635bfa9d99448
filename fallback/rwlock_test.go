package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A writer goes, and all readers at the head are told by its release: those behind the
// next writer wait. R32
func TestAllReadersAtTheHeadAreLetInByOneRelease(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w, a, b := s.player(), s.player(), s.player()
		g := s.get(s.rwlock(w).Lock)
		var readers []*wait
		for i := range 10 {
			readers = append(readers, s.wait(s.rwlock([]player{a, b}[i%2]).RLock))
		}
		writer := s.wait(s.rwlock(w).Lock)
		behind := s.wait(s.rwlock(a).RLock)
		before, at := w.w.count()+a.w.count()+b.w.count(), time.Now()
		s.release(g)
		var last recipes.Token
		for i, r := range readers {
			token := r.grant().Token()
			if r.at != at || token <= last || token <= g.Token() {
				t.Errorf("reader %d: %v late, token %v after %v", i, r.at.Sub(at), token, max(last, g.Token()))
			}
			last = token
		}
		if n := w.w.count() + a.w.count() + b.w.count() - before; n != 1 {
			t.Errorf("it took %d commands, want that of the release", n)
		}
		if !writer.pending() || !behind.pending() {
			t.Fatal("let in with the readers before")
		}
		for _, r := range readers {
			s.release(r.g)
		}
		if writer.grant().Token() <= last {
			t.Error("the writer's token is not above those of the readers")
		}
		s.release(writer.g)
		s.release(behind.grant())
		s.left()
	})
}

// Readers die, with times to live of 5s and 1s. Each hold runs out by itself, and the
// writer gets in when the last has. R43
func TestWriterComesInWhenTheLastLiveReaderHasGone(t *testing.T) {
	for _, order := range [][]time.Duration{{5 * time.Second, time.Second}, {time.Second, 5 * time.Second}} {
		onStage(t, func(t *testing.T, s *stage) {
			var readers []player
			var grants []*recipes.Grant
			for _, ttl := range order {
				p := s.player(fallback.TTL(ttl))
				readers = append(readers, p)
				grants = append(grants, s.get(s.rwlock(p).RLock))
			}
			long := slices.Index(order, 5*time.Second)
			writer := s.wait(s.rwlock(s.player()).Lock)

			time.Sleep(time.Minute) // both are renewed
			s.stands(grants...)
			readers[1-long].w.die()
			time.Sleep(time.Minute) // the other is, and does not renew the dead
			if !writer.pending() {
				t.Fatal("the writer is in beside a live reader")
			}
			s.stands(grants[long])
			s.ends(grants[1-long], recipes.ErrSessionLost)
			if n := s.admin.ZCard(t.Context(), keyed("lock")).Val(); n != 1 {
				t.Errorf("%d hold, want only the live one", n)
			}
			died := time.Now() // and it was renewed just now, by Verify
			readers[long].w.die()
			writer.grant()
			if !errors.Is(grants[long].Err(), recipes.ErrSessionLost) {
				t.Errorf("the writer is in, and the reader says: %v", grants[long].Err())
			}
			if d := writer.at.Sub(died); d < 5*time.Second || d > 5*time.Second+100*time.Millisecond {
				t.Errorf("in after %v, the dead reader's TTL was 5s", d)
			}
			s.release(writer.g)
			s.left()
		})
	}
}

// A writer becomes a reader: the read lock is its own, lives on and is renewed when the
// write lock was released, first or last. Other readers get in, writers do not. R44, R47
func TestReaderUnderAWriterOutlivesIt(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p, q := s.player(), s.player()
		l, other := s.rwlock(p), s.rwlock(q)
		g := s.get(l.Lock)
		r := s.get(func(ctx context.Context) (*recipes.Grant, error) { return l.RLock(g.Context(ctx)) })
		again, err := s.rwlock(p).TryRLock(g.Context(t.Context())) // as often as one likes
		if err != nil || again.Token() != g.Token() || r.Token() != g.Token() {
			t.Fatalf("%v, tokens %v and %v, want the writer's %v", err, again.Token(), r.Token(), g.Token())
		}
		s.fails(func(ctx context.Context) (*recipes.Grant, error) { return l.RLock(r.Context(ctx)) }, recipes.ErrDeadlock)
		s.release(again)
		reader := s.wait(other.RLock)
		if !reader.pending() {
			t.Fatal("a reader is in beside a writer")
		}
		s.release(g)
		reader.grant()
		s.fails(other.TryLock, recipes.ErrBusy)
		writer := s.wait(other.Lock)
		s.release(reader.g)
		time.Sleep(time.Minute)
		s.stands(r)
		if !writer.pending() {
			t.Fatal("a writer is in beside a reader")
		}
		s.release(r)
		s.release(writer.grant())

		g = s.get(l.Lock)
		r = s.get(func(ctx context.Context) (*recipes.Grant, error) { return l.RLock(g.Context(ctx)) })
		writer = s.wait(other.Lock)
		s.release(r)
		time.Sleep(time.Minute)
		s.stands(g)
		if !writer.pending() {
			t.Fatal("two writers")
		}
		s.release(g)
		s.release(writer.grant())
		s.left()
	})
}

// Somebody has removed the writer, and it does not know yet. What it asks for under its
// grant is not given.
func TestReaderUnderAWriterThatIsGone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		l := s.rwlock(s.player())
		g := s.get(l.Lock)
		s.srv.Del(keyed("lock"))
		other := s.get(s.rwlock(s.player()).Lock)
		s.fails(func(ctx context.Context) (*recipes.Grant, error) { return l.RLock(g.Context(ctx)) }, recipes.ErrNodeDeleted)
		s.ends(g, recipes.ErrNodeDeleted)
		s.stands(other)
	})
}

// A reader asks to write: an error at once, whether it is the only one or not. R45
func TestUpgradeFailsAtOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player(recipes.Reentrant())
		l := s.rwlock(p)
		one, two := s.get(l.RLock), s.get(l.RLock)
		at := time.Now()
		for i, g := range []*recipes.Grant{one, one} {
			for _, acquire := range []acquire{l.Lock, l.TryLock, s.rwlock(p).Lock} {
				s.fails(func(ctx context.Context) (*recipes.Grant, error) { return acquire(g.Context(ctx)) }, recipes.ErrUpgrade)
			}
			if i == 0 {
				s.release(two)
			}
		}
		if d := time.Since(at); d > 0 {
			t.Errorf("it took %v", d)
		}
		s.release(one)
		s.left()
	})
}

// Readers come and go so that there always is one. A writer waits for those only who
// were there before it. R46
func TestSteadyReadersDoNotStarveAWriter(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const holds = 100 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 20 {
			l := s.rwlock(s.player())
			wg.Go(func() {
				time.Sleep(time.Duration(i) * holds / 20)
				for ctx.Err() == nil {
					g, err := l.RLock(ctx)
					if err != nil {
						continue
					}
					time.Sleep(holds)
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(time.Second)
		l := s.rwlock(s.player())
		s.fails(l.TryLock, recipes.ErrBusy)
		for range 5 {
			asked := time.Now()
			writer := s.wait(l.Lock)
			writer.grant()
			if d := writer.at.Sub(asked); d > holds {
				t.Errorf("a writer waited for %v, readers hold for %v", d, holds)
			}
			s.release(writer.g)
			time.Sleep(time.Second)
		}
		stop()
		wg.Wait()
	})
}

// A hold with a short time to live comes, is renewed, and goes. The long one beside it
// lasts as long as it would have. R23
func TestShortHoldDoesNotShortenALongOne(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		long := s.rwlock(s.player(), fallback.TTL(10*time.Second), fallback.FixedLease())
		short := s.rwlock(s.player(), fallback.TTL(time.Second))
		asked := time.Now()
		g := s.get(long.RLock)
		for range 4 {
			r := s.get(short.RLock)
			time.Sleep(2 * time.Second)
			s.stands(r) // which renews it
			for _, part := range []string{"lock", "holds"} {
				if ms := s.admin.PTTL(t.Context(), keyed(part)).Val(); ms < g.Remaining() {
					t.Fatalf("%s lasts for %v, a hold in it for %v", part, ms, g.Remaining())
				}
			}
			s.release(r)
		}
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		writer := s.wait(s.rwlock(s.player()).Lock)
		writer.grant()
		if d := writer.at.Sub(asked); d < 9800*time.Millisecond || d > 10*time.Second+100*time.Millisecond { // it may end by our own clock
			t.Errorf("it lasted %v, want 10s", d)
		}
		s.ends(g, recipes.ErrSessionLost)
	})
}

// Somebody removes a part of what is on the server, whichever. Its holder is told, what
// is left is as it should be, and the next gets in. R11, R40
func TestPartOfTheLockIsRemoved(t *testing.T) {
	for _, part := range []struct {
		name   string
		remove func(s *stage, id string)
	}{
		{"Lock", func(s *stage, _ string) { s.srv.Del(keyed("lock")) }},
		{"Holds", func(s *stage, _ string) { s.srv.Del(keyed("holds")) }},
		{"Both", func(s *stage, _ string) { s.srv.Del(keyed("lock")); s.srv.Del(keyed("holds")) }},
		{"Time", func(s *stage, id string) { s.srv.ZRem(keyed("lock"), id) }},
		{"Record", func(s *stage, id string) { s.srv.HDel(keyed("holds"), id) }},
	} {
		t.Run(part.name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				l := s.rwlock(s.player(), fallback.TTL(time.Hour))
				g := s.get(l.RLock)
				list, err := l.Contenders(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var waits []*wait
				for range 5 {
					waits = append(waits, s.wait(s.rwlock(s.player()).Lock))
				}
				part.remove(s, list[0].ID)
				asked := time.Now()
				waits[0].grant()
				if d := waits[0].at.Sub(asked); d > time.Second {
					t.Errorf("the first in line got in after %v", d)
				}
				if err := g.Verify(t.Context()); !errors.Is(err, recipes.ErrNodeDeleted) {
					t.Errorf("the holder is told %v", err)
				}
				s.ends(g, recipes.ErrNodeDeleted)
				for _, w := range waits {
					s.release(w.grant())
				}
				s.left()
			})
		})
	}
}

// The same, with nobody else to notice; and a renewal that comes when the hold's time is
// over, while another keeps the keys there. Neither brings it back. R11
func TestRenewalDoesNotBringAHoldBack(t *testing.T) {
	for name, end := range map[string]func(s *stage, id string){
		"Record": func(s *stage, id string) { s.srv.HDel(keyed("holds"), id) },
		"Holds":  func(s *stage, _ string) { s.srv.Del(keyed("holds")) },
		"Lock":   func(s *stage, _ string) { s.srv.Del(keyed("lock")) },
		"TimeIsOver": func(s *stage, id string) {
			s.admin.ZAdd(s.t.Context(), keyed("lock"), redis.Z{Score: float64(time.Now().UnixMilli() - 1), Member: id})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				l := s.rwlock(s.player())
				g := s.get(l.RLock)
				id := must(l.Contenders(t.Context()))[0].ID
				s.get(l.RLock)
				end(s, id)
				before := s.admin.ZRange(t.Context(), keyed("lock"), 0, -1).Val()
				if err := g.Verify(t.Context()); !errors.Is(err, recipes.ErrNodeDeleted) {
					t.Errorf("a renewal says %v", err)
				}
				s.ends(g, recipes.ErrNodeDeleted)
				if after := s.admin.ZRange(t.Context(), keyed("lock"), 0, -1).Val(); !slices.Equal(before, after) {
					t.Errorf("%q, and after the renewal %q", before, after)
				}
			})
		})
	}
}

// What a lock of ours finds that is none, or one of another kind, is left alone.
func TestKeyIsUsedForSomethingElse(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player()
		mutex := must(fallback.NewMutex(p.Client, "x"))
		kinds := []acquire{mutex.Lock, s.rwlock(p).Lock, s.semaphore(p, 3).Acquire}
		tries := []acquire{mutex.TryLock, s.rwlock(p).TryRLock, s.semaphore(p, 3).TryAcquire}
		for i, acquire := range kinds {
			g := s.get(acquire)
			for j := range kinds {
				if i != j {
					s.fails(kinds[j], recipes.ErrConflict)
					s.fails(tries[j], recipes.ErrConflict)
				}
			}
			s.stands(g)
			s.release(g) // and then it may be another
		}
		for name, set := range map[string]func(key string){
			"string": func(key string) { s.srv.Set(key, "theirs") },
			"list":   func(key string) { s.srv.Push(key, "theirs") },
			"hash":   func(key string) { s.srv.HSet(key, "#", "theirs") },
			"zset":   func(key string) { s.srv.ZAdd(key, 1e18, "theirs") },
		} {
			for _, part := range []string{"lock", "holds"} {
				if part == "holds" && name == "zset" {
					continue // as a list
				}
				s.srv.FlushAll()
				set(keyed(part))
				before := s.srv.Dump()
				for i := range kinds[1:] {
					s.fails(kinds[1+i], recipes.ErrConflict)
					s.fails(tries[1+i], recipes.ErrConflict)
				}
				if _, err := s.rwlock(p).Contenders(t.Context()); part == "lock" && !errors.Is(err, recipes.ErrConflict) {
					t.Errorf("%s in %s: contenders: %v", name, part, err)
				}
				synctest.Wait()
				if after := s.srv.Dump(); after != before {
					t.Errorf("%s in %s: it was\n%s, and is\n%s", name, part, before, after)
				}
			}
		}
		s.srv.FlushAll()
	})
}

// The order of arrival, and who holds: what people see.
func TestContendersOfAnRWLock(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player()
		named := func(name string) *fallback.RWLock { return s.rwlock(p, recipes.Owner(name)) }
		a, b := s.get(named("a b").RLock), s.get(named("b").RLock)
		c, d := s.wait(named("c").Lock), s.wait(named("d").RLock)
		list, err := s.rwlock(s.player()).Contenders(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list {
			got = append(got, fmt.Sprint(c.Owner, " ", c.Kind, " ", c.Holding, " ", c.Token, " ", c.Permits, c.Slots))
		}
		want := []string{
			fmt.Sprint("a b read true ", a.Token(), " 0 []"), fmt.Sprint("b read true ", b.Token(), " 0 []"),
			"c write false 0 0 []", "d read false 0 0 []",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		s.release(a, b)
		s.release(c.grant())
		s.release(d.grant())
	})
}

func TestInputOfRWLock(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player()
		before := p.w.count()
		for _, err := range []error{
			second(fallback.NewRWLock(nil, "x")),
			second(fallback.NewRWLock(p.Client, "")),
			second(fallback.NewRWLock(p.Client, "x", fallback.Passes(1))),
			second(fallback.NewRWLock(p.Client, "x", fallback.TTL(0))),
			second(fallback.NewRWLock(p.Client, "x", nil)),
		} {
			if !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
		}
		if p.w.count() != before {
			t.Error("something was sent")
		}
	})
}

func second[L any](_ L, err error) error { return err }
