package barrier_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/barrier"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func double(e *locktest.Env, s *session.Session, n int, opts ...recipes.Option) *barrier.Double {
	e.T.Helper()
	d, err := barrier.NewDouble(s, locktest.Path, n, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return d
}

// An entry is an Enter under way.
type entry struct {
	*locktest.Attempt
	pass *barrier.Pass
}

func enter(e *locktest.Env, d *barrier.Double) *entry {
	n := &entry{}
	n.Attempt = e.Start(func(ctx context.Context) (*recipes.Grant, error) {
		p, err := d.Enter(ctx)
		if (p == nil) == (err == nil) {
			e.T.Errorf("pass %v together with error %v", p, err)
		}
		if err != nil {
			return nil, err
		}
		n.pass = p
		return p.Grant, nil
	})
	return n
}

// Pass returns what Enter did, within d.
func (n *entry) Pass(d time.Duration) *barrier.Pass {
	n.Grant(d)
	return n.pass
}

// leave is a Leave under way.
func leave(e *locktest.Env, p *barrier.Pass) chan error {
	done := make(chan error, 1)
	go func() { done <- p.Leave(e.T.Context()) }()
	return done
}
