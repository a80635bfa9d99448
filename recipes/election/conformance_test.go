package election_test

import (
	"context"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/zkconformance"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestConformance(t *testing.T) {
	zkconformance.Run(t, conformance.Suite{
		Size: 1,
		Ways: []conformance.Way{{Name: "Campaign", Takes: 1}},
		Lacks: map[conformance.Capability]string{
			conformance.Reentry: "nobody is elected twice at a time",
			conformance.All:     "an election is not a recipes.Lockable",
		},
	}, func(s *session.Session, path string, opts ...recipes.Option) (conformance.Lock, error) {
		e, err := election.New(s, path, opts...)
		grant := func(campaign func(context.Context, []byte) (*election.Term, error)) conformance.Acquire {
			return func(ctx context.Context) (*recipes.Grant, error) {
				term, err := campaign(ctx, []byte("value"))
				if err != nil {
					return nil, err
				}
				return term.Grant, nil
			}
		}
		return conformance.Lock{
			Enter:      []conformance.Entry{{Acquire: grant(e.Campaign), Try: grant(e.TryCampaign)}},
			Contenders: e.Contenders,
		}, err
	})
}
