package semaphore_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestConformance(t *testing.T) {
	const size = 3
	suite := conformance.Suite{Size: size, Lacks: map[conformance.Capability]string{
		conformance.Delay: "to keep permits closed would stop those who hold them no more than the one that died",
		conformance.All:   "a semaphore is not a recipes.Lockable",
	}}
	for n := 1; n <= size; n++ {
		suite.Ways = append(suite.Ways, conformance.Way{Name: "Acquire" + strconv.Itoa(n), Takes: n})
	}
	zkconformance.Run(t, suite, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		sem, err := semaphore.New(s, path, size, opts...)
		l := conformance.Lock{Contenders: sem.Contenders}
		for n := 1; n <= size; n++ {
			l.Enter = append(l.Enter, conformance.Entry{
				Acquire: func(ctx context.Context) (*recipes.Grant, error) { return sem.AcquireN(ctx, n) },
				Try:     func(ctx context.Context) (*recipes.Grant, error) { return sem.TryAcquireN(ctx, n) },
			})
		}
		return l, err
	})
}
