package rwlock_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestConformance(t *testing.T) {
	zkconformance.Run(t, conformance.Suite{
		Size: conformance.Whole,
		Ways: []conformance.Way{
			{Name: "Lock", Takes: conformance.Whole},
			{Name: "RLock", Takes: 1, Lacks: map[conformance.Capability]string{
				conformance.Delay: "a reader sends nothing that could do harm when it arrives late"}},
		},
	}, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		l, err := rwlock.New(s, path, opts...)
		return conformance.Lock{
			Enter:      []conformance.Entry{{Acquire: l.Lock, Try: l.TryLock}, {Acquire: l.RLock, Try: l.TryRLock}},
			Contenders: l.Contenders,
			Key:        l.Key,
		}, err
	})
}
