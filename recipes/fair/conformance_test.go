package fair_test

import (
	"context"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/session"
)

func conform(t *testing.T, more ...recipes.Option) {
	suite := conformance.Suite{Size: 1, Ways: []conformance.Way{{Name: "Lock", Takes: 1}}}
	zkconformance.Run(t, suite, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		l, err := fair.New(s, path, append(more, opts...)...)
		return conformance.Lock{
			Enter:      []conformance.Entry{{Acquire: l.Lock, Try: l.TryLock}},
			Contenders: l.Contenders,
			Key:        l.Key,
		}, err
	})
}

func TestConformance(t *testing.T) { conform(t) }

// One by one before the gate, and all of them in the lock's queue.
func TestConformanceOfAFlow(t *testing.T)     { conform(t, fair.Flow("tenant a/1", 1)) }
func TestConformanceOfAWideFlow(t *testing.T) { conform(t, fair.Flow("tenant", 1000)) }

func TestConformanceByHoldTime(t *testing.T) {
	conform(t, fair.Flow("tenant", 2), fair.ByHoldTime())
}

// A ticket that is waited for is a Lock, but that it doesn't queue again, and that
// who holds may join.
func TestConformanceOfTickets(t *testing.T) {
	suite := conformance.Suite{Size: 1, Ways: []conformance.Way{{Name: "Join", Takes: 1}}, Lacks: map[conformance.Capability]string{
		conformance.Reentry:    "Join does not look who holds",
		conformance.Requeueing: "a ticket that lost its place is of no more use",
	}}
	zkconformance.Run(t, suite, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		l, err := fair.New(s, path, opts...)
		return conformance.Lock{
			Enter: []conformance.Entry{{Try: l.TryLock, Acquire: func(ctx context.Context) (*recipes.Grant, error) {
				t, err := l.Join(ctx)
				if err != nil {
					return nil, err
				}
				defer t.Leave(ctx)
				return t.Wait(ctx)
			}}},
			Contenders: l.Contenders,
			Key:        l.Key,
		}, err
	})
}
