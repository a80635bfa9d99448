// Package fence has what a resource needs to refuse a holder that acts late.
//
// No lock service can stop a process that was paused in the middle of its work
// and goes on after its lock was given to another. The resource can: it remembers
// the largest [recipes.Token] that it has seen, and refuses smaller ones.
//
// A resource that lives in this process or behind this program uses a [Gate]. A
// database does it in the statement itself, with one more column; in the same
// statement, so that nothing comes between the check and the write:
//
//	UPDATE account
//	   SET balance = $1, fence = $2
//	 WHERE id = $3 AND fence <= $2      -- $2 is the grant's token
//
// No row changed means that a later holder has been here: [ErrStale]. An insert
// does the same with a conflict clause:
//
//	INSERT INTO report (day, body, fence) VALUES ($1, $2, $3)
//	ON CONFLICT (day) DO UPDATE SET body = excluded.body, fence = excluded.fence
//	 WHERE report.fence <= excluded.fence
//
// Tokens fit a signed 64-bit column. Writes into ZooKeeper itself need no column:
// see package guard.
//
// The method is the sequencer of Chubby (Burrows, 2006), with numbers.
package fence

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// ErrStale: the token is smaller than one that was already admitted, so its
// holder has lost the lock since.
var ErrStale = errors.New("fence: stale token")

// A Gate admits tokens that are not smaller than any before. The zero Gate is
// ready for use, admits everything at first, and is safe for concurrent use. It
// remembers only as long as the process lives: what must survive a restart keeps
// the token with its data, as in the package's SQL.
type Gate struct {
	mu      sync.Mutex
	largest recipes.Token
}

// Admit returns nil and remembers t, or returns an error that matches ErrStale.
// Token 0, which no grant has, is refused.
func (g *Gate) Admit(t recipes.Token) error {
	return g.Do(t, func() error { return nil })
}

// Do admits t and runs fn while no other token can be admitted: for writes that
// must not be overtaken between the check and their end. Until fn returns, all
// other calls wait, so fn must not use the Gate. It returns an error that matches
// ErrStale without running fn, or fn's error, after which t counts as seen, too.
func (g *Gate) Do(t recipes.Token, fn func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t == 0 {
		return fmt.Errorf("%w: 0 is no token", ErrStale)
	}
	if t < g.largest {
		return fmt.Errorf("%w: %v, after %v", ErrStale, t, g.largest)
	}
	g.largest = t
	return fn()
}

// Largest returns the largest token admitted so far, 0 if none.
func (g *Gate) Largest() recipes.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.largest
}
