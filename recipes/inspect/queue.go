package inspect

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// What kinds of lock there are: Queue.Recipe.
const (
	Mutex     = "mutex"
	Fair      = "fair" // a mutex with flows
	RWLock    = "rwlock"
	Semaphore = "semaphore"
	Election  = "election"
)

// A Queue is all who hold a lock or wait for it, at one moment. Its JSON has these
// names:
//
//	{"path":"/locks/gpu","recipe":"semaphore","size":2,"time":"2026-03-01T09:30:10.25Z","contenders":[
//	  {"place":0,"holding":true,"owner":"web1/4711","kind":"lease","token":4294967299,"permits":1,"slots":[0],
//	   "since":"2026-03-01T09:30:00Z","id":"3e8c1-lease-0000000004","age_ms":10250}, …]}
//
// What does not apply is left out: recipe, size, flow, permits, slots, and mine where
// it is false. contenders is always there.
type Queue struct {
	Path       string      `json:"path"`
	Recipe     string      `json:"recipe,omitempty"` // "" where nobody has used the path yet
	Size       int         `json:"size,omitempty"`   // of a semaphore
	Time       time.Time   `json:"time"`             // of the look, by the server's clock as far as it is known
	Contenders []Contender `json:"contenders"`       // holders first, then waiters in the order of the queue
}

// A Contender is one request for the lock.
type Contender struct {
	Place   int           `json:"place"` // 0: holds; 1: the first of those who wait; …
	Holding bool          `json:"holding"`
	Owner   string        `json:"owner"`          // as given by recipes.Owner; what other libraries wrote, where it is text
	Flow    string        `json:"flow,omitempty"` // of a fair lock
	Kind    string        `json:"kind"`           // "lock", "read", "write", "lease" or "candidate"
	Token   recipes.Token `json:"token"`          // that it has, or will have; a number
	Permits int           `json:"permits,omitempty"`
	Slots   []int         `json:"slots,omitempty"`
	Since   time.Time     `json:"since"` // when it queued, by the server's clock
	Age     time.Duration `json:"-"`     // for how long it has been in line, the time of holding included; age_ms in JSON, in milliseconds
	Mine    bool          `json:"mine,omitempty"`
	ID      string        `json:"id"` // the name of its node
}

// Holders returns those who hold.
func (q Queue) Holders() []Contender { return q.Contenders[:q.holders()] }

// Waiters returns those who wait.
func (q Queue) Waiters() []Contender { return q.Contenders[q.holders():] }

func (q Queue) holders() int {
	n := slices.IndexFunc(q.Contenders, func(c Contender) bool { return !c.Holding })
	if n < 0 {
		return len(q.Contenders)
	}
	return n
}

// fill takes in who was seen, at a time.
func (q *Queue) fill(seen []recipes.Contender, at time.Time) {
	q.Time = at.UTC().Truncate(time.Millisecond)
	q.Contenders = make([]Contender, 0, len(seen))
	for _, holding := range []bool{true, false} {
		for _, c := range seen {
			if c.Holding != holding {
				continue
			}
			place := 0
			if !holding {
				place = len(q.Waiters()) + 1
			}
			q.Contenders = append(q.Contenders, Contender{
				Place: place, Holding: holding, Owner: c.Owner, Flow: c.Flow, Kind: c.Kind, Token: c.Token,
				Permits: c.Permits, Slots: c.Slots, Since: c.Since.UTC(), Mine: c.Mine, ID: c.ID,
			})
		}
	}
	q.age()
}

// age counts how long everybody has been in line.
func (q *Queue) age() {
	for i := range q.Contenders {
		c := &q.Contenders[i]
		c.Age = max(0, q.Time.Sub(c.Since))
	}
}

// At returns q as it is at a later time, by the same clock as q.Time, if nothing has
// changed: ages have grown. It is for showing q again.
func (q Queue) At(t time.Time) Queue {
	q.Time = t
	q.Contenders = slices.Clone(q.Contenders)
	q.age()
	return q
}

// same reports whether two looks show the same, but for the time.
func same(a, b Queue) bool {
	return a.Recipe == b.Recipe && a.Size == b.Size && slices.EqualFunc(a.Contenders, b.Contenders, func(a, b Contender) bool {
		return a.ID == b.ID && a.Token == b.Token && a.Place == b.Place && a.Flow == b.Flow && a.Owner == b.Owner &&
			a.Mine == b.Mine && a.Permits == b.Permits && slices.Equal(a.Slots, b.Slots)
	})
}

// plain is a Contender without methods.
type plain Contender

type contenderJSON struct {
	plain
	AgeMS int64 `json:"age_ms"`
}

// MarshalJSON writes Age as age_ms.
func (c Contender) MarshalJSON() ([]byte, error) {
	return json.Marshal(contenderJSON{plain(c), c.Age.Milliseconds()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Contender) UnmarshalJSON(data []byte) error {
	var v contenderJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*c = Contender(v.plain)
	c.Age = time.Duration(v.AgeMS) * time.Millisecond
	return nil
}
