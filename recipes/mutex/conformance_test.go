package mutex_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestConformance(t *testing.T) {
	zkconformance.Run(t, conformance.Suite{Size: 1, Ways: []conformance.Way{{Name: "Lock", Takes: 1}}},
		func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
			m, err := mutex.New(s, path, opts...)
			return conformance.Lock{
				Enter:      []conformance.Entry{{Acquire: m.Lock, Try: m.TryLock}},
				Contenders: m.Contenders,
				Key:        m.Key,
			}, err
		})
}
