package conformance_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A server keeps the lines of its locks. It stands for ZooKeeper or Redis: what
// clients know of it they know by the entries' channels and by asking.
type server struct {
	flaws
	size     int
	lifetime time.Duration // of a session that isn't heard of

	mu     sync.Mutex
	token  recipes.Token
	ids    int
	lines  map[string][]*entry
	closed map[string]time.Time // by a lock delay
	change chan struct{}
}

// An entry is a contender.
type entry struct {
	id      int
	lock    string
	takes   int
	life    *life
	token   recipes.Token
	since   time.Time
	set     recipes.Settings
	granted bool
	turn    chan struct{} // closed when it is granted
	gone    chan struct{} // closed when it is removed
}

func newServer(size int, lifetime time.Duration, f flaws) *server {
	return &server{
		flaws: f, size: size, lifetime: lifetime,
		lines: map[string][]*entry{}, closed: map[string]time.Time{}, change: make(chan struct{}),
	}
}

// stirred wakes those who wait for a state. Called with the server locked.
func (s *server) stirred() {
	close(s.change)
	s.change = make(chan struct{})
}

func (s *server) enter(e *entry, try, again bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.stirred()
	if e.life.expired {
		return recipes.ErrSessionLost
	}
	if try && s.busy(e) {
		if s.failedTryStays {
			s.lines[e.lock] = append(s.lines[e.lock], e)
		}
		return recipes.ErrBusy
	}
	s.ids++
	s.token++
	e.id, e.token, e.since = s.ids, s.token, time.Now()
	switch {
	case s.tokensFall:
		e.token = 1<<40 - s.token
	case s.tokensStay:
		e.token = 7
	}
	if again && s.lostWaiterPasses {
		s.lines[e.lock] = slices.Insert(s.lines[e.lock], 1, e)
	} else {
		s.lines[e.lock] = append(s.lines[e.lock], e)
	}
	s.serve(e.lock)
	if try && s.tryBarges && !e.granted {
		e.granted = true
		close(e.turn)
	}
	return nil
}

// busy reports whether e would have to wait.
func (s *server) busy(e *entry) bool {
	sum := 0
	for _, other := range s.lines[e.lock] {
		if other.granted || !s.tryBarges {
			sum += other.takes
		}
	}
	if s.tryCountsWrong {
		sum -= e.takes
	}
	return s.tryNeverSucceeds || sum > s.size-e.takes || time.Now().Before(s.closed[e.lock])
}

// serve grants what fits. Called with the server locked.
func (s *server) serve(lock string) {
	if left := time.Until(s.closed[lock]); left > 0 {
		time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.serve(lock)
		})
		return
	}
	line := slices.Clone(s.lines[lock])
	if s.lastComesFirst {
		slices.Reverse(line)
		slices.SortStableFunc(line, func(a, b *entry) int {
			return map[bool]int{true: 0, false: 1}[a.granted] - map[bool]int{true: 0, false: 1}[b.granted]
		})
	}
	sum := 0
	for _, e := range line {
		takes := e.takes
		if s.nothingIsShared {
			takes = s.size
		}
		size := s.size
		if s.oneTooMany {
			size++
		}
		if sum+takes > size {
			if s.smallOnesPass {
				continue
			}
			return
		}
		sum += takes
		if !e.granted {
			e.granted = true
			close(e.turn)
		}
	}
}

// remove takes an entry out of its line. died says that it wasn't released.
func (s *server) remove(e *entry, died bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(e, died)
}

func (s *server) removeLocked(e *entry, died bool) {
	i := slices.Index(s.lines[e.lock], e)
	if i < 0 {
		return
	}
	defer s.stirred()
	s.lines[e.lock] = slices.Delete(s.lines[e.lock], i, i+1)
	close(e.gone)
	if (died || s.delayAlways) && e.granted && e.set.LockDelay > 0 && !s.noDelay {
		s.closed[e.lock] = time.Now().Add(e.set.LockDelay)
	}
	if !s.nobodyIsWoken {
		s.serve(e.lock)
	}
}

// expire ends a life on the server.
func (s *server) expire(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.expired = true
	for _, line := range s.lines {
		for _, e := range slices.Clone(line) {
			if e.life == l {
				s.removeLocked(e, true)
			}
		}
	}
}

// clear takes a whole line away.
func (s *server) clear(lock string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[lock]
	s.lines[lock] = nil
	for _, e := range line {
		close(e.gone)
	}
	if s.tokensBeginAnew {
		s.token = 0
	}
	s.stirred()
}

func (s *server) there(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.lines[e.lock], e)
}

// until waits for a line of n, or for the time to be over.
func (s *server) until(lock string, n int, patience time.Duration) (string, bool) {
	over := time.After(patience)
	for {
		s.mu.Lock()
		line, change := slices.Clone(s.lines[lock]), s.change
		s.mu.Unlock()
		if len(line) == n {
			return "", true
		}
		select {
		case <-change:
		case <-over:
			is := fmt.Sprintf("%d:", len(line))
			for _, e := range line {
				is += fmt.Sprintf(" %d(%s, takes %d, granted %v)", e.id, e.set.Owner, e.takes, e.granted)
			}
			return is, false
		}
	}
}
