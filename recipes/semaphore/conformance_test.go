package semaphore_test

import (
	"context"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestConformance(t *testing.T) {
	suite := conformance.Suite{
		Size: 3,
		Ways: []conformance.Way{{Name: "Acquire", Takes: 1}, {Name: "AcquireN 2", Takes: 2}},
		Lacks: map[conformance.Capability]string{
			conformance.Delay: "a delay is for a resource that one uses at a time",
		},
	}
	zkconformance.Run(t, suite, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		sem, err := semaphore.New(s, path, suite.Size, opts...)
		if err != nil {
			return conformance.Lock{}, err
		}
		two := func(acquire func(context.Context, int) (*recipes.Grant, error)) conformance.Acquire {
			return func(ctx context.Context) (*recipes.Grant, error) { return acquire(ctx, 2) }
		}
		return conformance.Lock{
			Enter: []conformance.Entry{
				{Acquire: sem.Acquire, Try: sem.TryAcquire},
				{Acquire: two(sem.AcquireN), Try: two(sem.TryAcquireN)},
			},
			Contenders: sem.Contenders,
			Key:        sem.Permits(1).Key,
		}, nil
	})
}
