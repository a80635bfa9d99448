// Package mutex_test runs the mutex on real servers: from several processes,
// while servers are killed, paused and cut off from each other, and beside the
// locks of other libraries.
package mutex_test

import (
	"context"
	"os"
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/worker"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

// TestMain is also that of the processes which tests start of themselves.
func TestMain(m *testing.M) {
	worker.Main(func(ctx context.Context, j worker.Job) (func(context.Context) (*recipes.Grant, error), func(), error) {
		s, err := session.Open(ctx, session.Config{Servers: j.Servers, Timeout: j.Timeout})
		if err != nil {
			return nil, nil, err
		}
		m, err := mutex.New(s, j.Path)
		if err != nil {
			s.Close()
			return nil, nil, err
		}
		return m.Lock, func() { s.Close() }, nil
	})
	os.Exit(m.Run())
}

func newMutex(t *testing.T, s *session.Session, path string, opts ...recipes.Option) *mutex.Mutex {
	t.Helper()
	m, err := mutex.New(s, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
