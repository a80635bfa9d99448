package inspect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Where our clock is behind the server's, nobody has been in line for less than no
// time, and what was learned of the server's clock is kept.
func TestClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Observer
		start := time.Now()
		see := func(since ...time.Duration) (ages []time.Duration) {
			var seen []recipes.Contender
			for i, d := range since {
				seen = append(seen, recipes.Contender{Since: start.Add(d), Holding: i == 0})
			}
			var q Queue
			q.fill(seen, o.now(seen))
			for _, c := range q.Contenders {
				ages = append(ages, c.Age)
			}
			return ages
		}
		if got := see(time.Minute, time.Hour); got[0] != 59*time.Minute || got[1] != 0 {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if got := see(time.Minute); got[0] != 59*time.Minute+time.Second {
			t.Error(got)
		}
	})
}

// Holders come first, also where they are not the first in line.
func TestHoldersFirst(t *testing.T) {
	var q Queue
	q.fill([]recipes.Contender{{ID: "a"}, {ID: "b", Holding: true}, {ID: "c"}, {ID: "d", Holding: true}}, time.Now())
	got := ""
	for _, c := range q.Contenders {
		got += c.ID + string(rune('0'+c.Place))
	}
	if got != "b0d0a1c2" || len(q.Holders()) != 2 || len(q.Waiters()) != 2 || q.Waiters()[0].ID != "a" {
		t.Errorf("%s: %+v", got, q)
	}
}

// Whatever can be seen of a queue but the time makes a difference.
func TestSame(t *testing.T) {
	base := func() Queue {
		return Queue{Recipe: Semaphore, Size: 2, Contenders: []Contender{{ID: "a", Slots: []int{0}, Permits: 1}, {ID: "b", Place: 1}}}
	}
	for name, edit := range map[string]func(*Queue){
		"recipe":  func(q *Queue) { q.Recipe = Mutex },
		"size":    func(q *Queue) { q.Size = 3 },
		"gone":    func(q *Queue) { q.Contenders = q.Contenders[:1] },
		"other":   func(q *Queue) { q.Contenders[1].ID = "c" },
		"place":   func(q *Queue) { q.Contenders[1].Place = 0 },
		"slots":   func(q *Queue) { q.Contenders[1].Slots = []int{1} },
		"permits": func(q *Queue) { q.Contenders[1].Permits = 1 },
		"flow":    func(q *Queue) { q.Contenders[1].Flow = "f" },
		"owner":   func(q *Queue) { q.Contenders[1].Owner = "o" },
		"token":   func(q *Queue) { q.Contenders[1].Token = 9 },
		"mine":    func(q *Queue) { q.Contenders[1].Mine = true },
	} {
		q := base()
		edit(&q)
		if same(base(), q) {
			t.Errorf("%s makes no difference", name)
		}
	}
	q := base().At(time.Now())
	if !same(base(), q) {
		t.Error("the time makes a difference")
	}
}
