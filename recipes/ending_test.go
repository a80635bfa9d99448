package recipes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type longHold struct{}

func (longHold) Remaining() time.Duration             { return time.Hour }
func (longHold) Verify(context.Context) error         { return nil }
func (longHold) GiveUp(cause error, done func(error)) { done(nil) }

// A long grant does not gather what short contexts leave.
func TestContextsThatEndedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := NewGrant(Spec{Realm: "r", Path: "/x", Token: 1, Hold: longHold{}})
		for range 100 {
			parent, cancel := context.WithCancel(t.Context())
			g.Context(parent)
			cancel()
		}
		synctest.Wait()
		if n := len(g.ending.hooks); n != 0 {
			t.Errorf("%d are kept", n)
		}
		g.Release(t.Context())
	})
}

func TestEnding(t *testing.T) {
	e := newEnding()
	first, second := errors.New("first"), errors.New("second")
	var got []error
	e.onEnd(func(err error) { got = append(got, err) })
	e.onEnd(func(error) { t.Error("called though forgotten") })()
	if e.result() != nil || !e.finish(first) || e.finish(second) || e.result() != first {
		t.Errorf("%v", e.result())
	}
	e.onEnd(func(err error) { got = append(got, err) })() // at once
	if len(got) != 2 || got[0] != first || got[1] != first {
		t.Errorf("%v", got)
	}
}
