// Package history records what the clients of one lock saw and checks it against
// what a lock is: one holder at a time, each with a larger token than the last.
//
// A grant counts from the moment when acquiring it returned until its Done is
// closed, however it ended: as long as Done is open, its holder works.
package history

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Recorder collects the history of one exclusive lock, whose clients are in this
// process. Its methods may be called by any number of goroutines.
type Recorder struct {
	t     testing.TB
	begin time.Time
	wg    sync.WaitGroup

	mu     sync.Mutex
	ops    []porcupine.Operation
	live   map[*recipes.Grant]int // to the client that has it
	grants int
	lost   int
}

// New starts an empty history. The test has to call Check before it ends.
func New(t testing.TB) *Recorder {
	return &Recorder{t: t, begin: time.Now(), live: make(map[*recipes.Grant]int)}
}

// Acquire calls acquire for a client, and records the grant and its end. It fails
// the test at once if another grant is open when acquire returns one.
func (r *Recorder) Acquire(ctx context.Context, client int, acquire func(context.Context) (*recipes.Grant, error)) (*recipes.Grant, error) {
	call := r.now()
	g, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, owner := range r.live {
		select {
		case <-other.Done():
		default:
			r.t.Errorf("client %d was granted the lock with token %v, while client %d still has it with token %v", client, g.Token(), owner, other.Token())
		}
	}
	r.grants++
	r.live[g] = client
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: acquired, Output: g.Token(), Call: call, Return: r.now()})
	r.wg.Go(func() { r.follow(client, g, call) })
	return g, nil
}

// follow records the end of a grant: it came after the last moment at which the
// grant was seen open, and before it was seen ended.
func (r *Recorder) follow(client int, g *recipes.Grant, open int64) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for ended := false; !ended; {
		now := r.now()
		select {
		case <-g.Done():
			ended = true
		default:
			open = now
			select {
			case <-g.Done():
			case <-look.C:
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, g)
	if !isReleased(g) {
		r.lost++
	}
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: ended, Output: g.Token(), Call: open, Return: r.now()})
}

// Check waits until every grant has ended, and fails the test if the history is
// not one of a lock. It then draws it, into the test's artifacts.
func (r *Recorder) Check() {
	r.t.Helper()
	r.wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(model, r.ops, time.Minute)
	r.t.Logf("%d grants, %d of them revoked; linearizable: %s", r.grants, r.lost, result)
	if result == porcupine.Ok {
		return
	}
	r.t.Errorf("this is no history of a lock (%s)", result)
	drawing := filepath.Join(r.t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(model, info, drawing); err != nil {
		r.t.Log(err)
	}
}

// Grants returns how many grants were recorded so far.
func (r *Recorder) Grants() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grants
}

func (r *Recorder) now() int64 { return int64(time.Since(r.begin)) }
