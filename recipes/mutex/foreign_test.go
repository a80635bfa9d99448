package mutex_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// How other libraries name their contenders.
var foreignNames = map[string]string{
	"Curator":      "_c_5f2c1f9e-8c26-4d3f-9d8c-0a8e6c0f5b11-lock-%010d",
	"kazoo":        "a3b1c4d2e5f60718293a4b5c6d7e8f90__lock__%010d",
	"go-zookeeper": "_c_9f86d081884c7d659a2feaa0c55ad015-lock-%010d",
	"bare":         "lock-%010d",
}

// queueForeign puts another library's contender at the end of the queue.
func queueForeign(e *locktest.Env, format string, owner int64) string {
	st, _ := e.Stat(locktest.Path)
	seq := int64((uint32(st.Cversion) + uint32(st.NumChildren)) / 2)
	path := locktest.Path + "/" + fmt.Sprintf(format, seq)
	if err := e.CreateEphemeral(path, []byte("them"), owner); err != nil {
		e.T.Fatal(err)
	}
	e.SetSequence(locktest.Path, seq+1)
	return path
}

// case 59
func TestOtherLibrariesTakePart(t *testing.T) {
	for lib, format := range foreignNames {
		t.Run(lib, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				other := e.Open().ID()
				m := e.New()
				e.Release(e.Lock(m))
				before := queueForeign(e, format, other)
				if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
					t.Errorf("held by another library: %v", err)
				}
				first := e.Start(m.Lock)
				e.Queued(2)
				between := queueForeign(e, format, other)
				second := e.Start(m.Lock)
				e.Queued(4)
				third := e.Start(e.New().Lock)
				e.Queued(5)
				behind := queueForeign(e, format, other)
				if !first.Pending() {
					t.Fatal("granted while another library holds")
				}
				e.Delete(before)
				e.Release(first.Grant(time.Second))
				if !second.Pending() {
					t.Fatal("passed another library's contender")
				}
				e.Delete(between)
				g := second.Grant(time.Second)
				e.Release(g)
				e.Release(third.Grant(time.Second))
				e.Delete(behind)
				e.Release(e.Lock(m))
			})
		})
	}
}

// case 59: theirs gives up while ours waits behind it, and while another of ours
// holds.
func TestOtherLibrariesGiveUp(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		other := e.Open().ID()
		g := e.Lock(e.New())
		theirs := queueForeign(e, foreignNames["Curator"], other)
		a := e.Start(e.New().Lock)
		e.Queued(3)
		e.Delete(theirs)
		time.Sleep(time.Minute)
		if !a.Pending() || g.Err() != nil {
			t.Fatalf("waits %v, held %v", a.Pending(), g.Err())
		}
		e.Release(g)
		e.Release(a.Grant(time.Second))
	})
}

// case 55: the order is that of the numbers, whatever the names begin with.
func TestNamesSortDifferentlyFromNumbers(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		other := e.Open().ID()
		var theirs []string
		for i, lead := range []string{"zz", "aa", "mm"} {
			path := fmt.Sprintf("%s/%s-lock-%010d", locktest.Path, lead, i)
			e.CreateEphemeral(path, nil, other)
			theirs = append(theirs, path)
		}
		e.SetSequence(locktest.Path, 3)
		a := e.Start(e.New().Lock)
		e.Queued(4)
		for _, i := range []int{2, 0, 1} {
			if !a.Pending() {
				t.Fatalf("granted before %s has gone", theirs[i])
			}
			e.Delete(theirs[i])
		}
		e.Release(a.Grant(time.Second))
	})
}

// case 60: of two with the same number, the one that was there first has it.
func TestSameNumberTwice(t *testing.T) {
	for _, theirsIsFirst := range []bool{true, false} {
		for _, held := range []bool{false, true} {
			locktest.Run(t, func(e *locktest.Env) {
				other := e.Open().ID()
				m := e.New()
				e.Release(e.Lock(m)) // 0
				var blocker string
				if held {
					blocker = queueForeign(e, foreignNames["kazoo"], other) // 1
				}
				st, _ := e.Stat(locktest.Path)
				seq := int64((uint32(st.Cversion) + uint32(st.NumChildren)) / 2)
				theirs := locktest.Path + "/" + fmt.Sprintf(foreignNames["Curator"], seq)
				if theirsIsFirst {
					e.CreateEphemeral(theirs, nil, other)
					e.SetSequence(locktest.Path, seq)
				}
				a := e.Start(m.Lock)
				if held {
					e.Queued(2 + map[bool]int{true: 1}[theirsIsFirst])
				} else {
					time.Sleep(time.Second)
				}
				if !theirsIsFirst {
					e.CreateEphemeral(theirs, nil, other)
				}
				if held {
					if !a.Pending() {
						t.Fatal("granted too early")
					}
					e.Delete(blocker)
				}
				if theirsIsFirst {
					time.Sleep(time.Minute)
					if !held && !a.Pending() {
						t.Log("released is next to the number: nothing shows the other one")
					}
					if !a.Pending() {
						t.Fatal("granted, although the other one with its number was first")
					}
					e.Delete(theirs)
				}
				e.Release(a.Grant(time.Second))
				e.Delete(theirs)
			})
		}
	}
}

// case 60: one with our number comes after us, just before we look who is there.
func TestSameNumberComesLater(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		other := e.Open().ID()
		m := e.New()
		e.Release(e.Lock(m))
		blocker := queueForeign(e, foreignNames["kazoo"], other)
		arrived, release := e.HoldRequest(zktest.OpGetChildren2, 1)
		a := e.Start(m.Lock)
		locktest.Await(e, arrived)
		theirs := locktest.Path + "/" + fmt.Sprintf(foreignNames["Curator"], 2)
		e.CreateEphemeral(theirs, nil, other)
		release()
		if !a.Pending() {
			t.Error("granted while another holds")
		}
		e.Delete(blocker)
		e.Release(a.Grant(time.Second))
		e.Delete(theirs)
	})
}

// case 58: children that are no contenders, of any name.
func TestOddNamesInTheDirectory(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.Release(e.Lock(m))
		odd := []string{"config", "lock-", "lock-x", "lock-12", "lock-99999999999", "lock-0000000000x", "0000000001",
			"lock--", "-lock-+000000001", "x-lock-00000000 1", "Lock-0000000000", "lease-0000000000", "ü-lock-", "lock-٠٠٠٠٠٠٠٠٠٠"}
		for _, name := range odd {
			if err := e.Create(locktest.Path+"/"+name, []byte("odd")); err != nil {
				t.Fatal(name, err)
			}
		}
		for _, m := range []interface{ recipes.Lockable }{m, e.New()} {
			g := e.Lock(m)
			a := e.Start(m.Lock)
			e.Queued(len(odd) + 2)
			e.Release(g)
			e.Release(a.Grant(time.Second))
		}
		e.Release(e.Start(m.TryLock).Grant(time.Second))
		cs, err := m.Contenders(e.T.Context())
		if err != nil || len(cs) != 0 {
			t.Errorf("%v, %v", cs, err)
		}
		if got := e.Children(locktest.Path); len(got) != len(odd) {
			t.Errorf("%q", got)
		}
	})
}

// ErrConflict: the path belongs to another recipe.
func TestPathOfAnotherRecipe(t *testing.T) {
	for name, prepare := range map[string]func(e *locktest.Env){
		"record":    func(e *locktest.Env) { e.Create(locktest.Path, []byte("lockkeeper rwlock released=3")) },
		"read lock": func(e *locktest.Env) { e.Create(locktest.Path+"/_c_1-__READ__0000000000", nil) },
		"write lock": func(e *locktest.Env) {
			e.Create(locktest.Path+"/_c_1-__WRIT__0000000000", nil)
			e.Create(locktest.Path+"/_c_1-__READ__0000000001", nil)
		},
		"ephemeral": func(e *locktest.Env) { e.CreateEphemeral(locktest.Path, nil, e.Open().ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				prepare(e)
				before := e.Tree()
				m := e.New()
				if _, err := m.Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
					t.Errorf("Lock: %v", err)
				}
				if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
					t.Errorf("TryLock: %v", err)
				}
				if after := e.Tree(); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
			})
		})
	}
}

// Data that somebody else keeps at the path is left alone.
func TestDataOfSomebodyElse(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, data := range []string{"127.0.0.1:80", "lockkeeper", "{}", "\x00\xff"} {
			locktest.Run(t, func(e *locktest.Env) {
				m := e.New()
				if late {
					e.Release(e.Lock(m))
				}
				g := (*recipes.Grant)(nil)
				if late {
					g = e.Lock(m)
					e.Set(locktest.Path, []byte(data))
				} else {
					e.Create(locktest.Path, []byte(data))
					g = e.Lock(m)
				}
				a, b := e.Start(e.New().Lock), e.Start(m.Lock)
				e.Queued(3)
				e.Release(g)
				time.Sleep(time.Second)
				if b.Pending() == a.Pending() {
					t.Errorf("both wait: %v", a.Pending())
				}
				if a.Pending() {
					a, b = b, a
				}
				e.Release(a.Grant(time.Second))
				e.Release(b.Grant(time.Second))
				if _, err := e.New(recipes.LockDelay(time.Second)).Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
					t.Errorf("with a lock delay, for which the data is needed: %v", err)
				}
				if got, _ := e.Data(locktest.Path); string(got) != data {
					t.Errorf("the data is %q, was %q", got, data)
				}
				e.Empty()
			})
		}
	}
}
