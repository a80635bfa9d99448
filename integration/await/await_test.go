package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

type hold struct{}

func (hold) Remaining() time.Duration             { return time.Hour }
func (hold) Verify(context.Context) error         { return nil }
func (hold) GiveUp(cause error, done func(error)) { done(nil) }

func grant(token recipes.Token) (*recipes.Grant, func(error, bool) bool) {
	return recipes.NewGrant(recipes.Spec{Path: "/x", Token: token, Hold: hold{}})
}

// failures is a test that only counts them.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.count++ }

func TestHandOver(t *testing.T) {
	for _, test := range []struct {
		name        string
		ends        time.Duration // after the cut
		why         error
		next        recipes.Token // granted two seconds after the cut
		lead        time.Duration
		wantFailing int
	}{
		{"AsItShouldBe", time.Second, recipes.ErrSessionLost, 8, time.Second, 0},
		{"TwoHold", 3 * time.Second, recipes.ErrSessionLost, 8, -time.Second, 1},
		{"AnotherReason", time.Second, errors.New("another"), 8, time.Second, 1},
		{"TokenFalls", time.Second, recipes.ErrSessionLost, 6, time.Second, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := &failures{TB: t}
				held, revoke := grant(7)
				cut := make(chan struct{})
				next := Later(t, func(context.Context) (*recipes.Grant, error) {
					<-cut
					time.Sleep(2 * time.Second)
					g, _ := grant(test.next)
					return g, nil
				})
				_, lead := HandOver(fails, held, next, func() {
					close(cut)
					time.AfterFunc(test.ends, func() { revoke(test.why, false) })
				})
				if lead != test.lead || fails.count != test.wantFailing {
					t.Errorf("lead %v with %d failures, want %v with %d", lead, fails.count, test.lead, test.wantFailing)
				}
			})
		})
	}
}
