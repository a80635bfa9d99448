package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Run campaigns, with the option [Value], and runs fn while elected, again and
// again:
//
//   - fn's context ends with the term. After a loss Run waits for fn to return,
//     since two of it must not run at a time, and campaigns again; what fn then
//     returned goes to the logger, if it is no nil. Where fn doesn't return, others
//     lead in the meantime, and this candidate never does again.
//   - If fn has called Resign or ResignTo and returns nil, Run campaigns again, at
//     the tail: that is how to step down and stay a candidate.
//   - If fn returns while elected, Run resigns and returns what fn did. So it does
//     where fn panics or calls runtime.Goexit, which then goes on. It also returns
//     an error that fn returns after it has resigned.
//   - If ctx ends, Run waits for fn to return, resigns in the background, and
//     returns an error that matches context.Cause(ctx), and fn's.
//
// So there is one candidacy or one term at any time, and none when Run has
// returned. Other errors are those of Campaign: recipes.ErrSessionClosed when the
// session is closed, or with recipes.FailOnLoss, when a place in the queue is lost.
// Each call of Run is a candidate of its own.
func (e *Election) Run(ctx context.Context, fn func(ctx context.Context, t *Term) error) error {
	if fn == nil {
		return fmt.Errorf("lockkeeper: election: Run: %w: want a function", recipes.ErrInvalid)
	}
	for {
		t, err := e.Campaign(ctx, e.value)
		if err != nil {
			return err
		}
		if again, err := e.serve(ctx, t, fn); !again {
			return err
		}
	}
}

// serve runs fn for one term, and reports whether to campaign again.
func (e *Election) serve(ctx context.Context, t *Term, fn func(context.Context, *Term) error) (again bool, err error) {
	lost := func(cause, returned error) (bool, error) {
		if returned != nil {
			e.set.Logger.Info("term lost, campaigning again", "path", e.Path(), "cause", cause, "returned", returned)
		}
		return true, nil
	}
	defer func() { // also on a panic
		switch rerr := t.Resign(ctx); {
		case again || rerr == nil || ctx.Err() != nil:
		case errors.Is(rerr, recipes.ErrRevoked): // which shows only now
			again, err = lost(rerr, err)
		default:
			err = errors.Join(err, rerr)
		}
	}()
	err = fn(t.Context(ctx), t)
	ended := t.Err()
	switch {
	case ctx.Err() != nil:
		cause := context.Cause(ctx)
		if err == nil || errors.Is(err, cause) {
			return false, &recipes.Error{Op: "run", Path: e.Path(), Reason: cause}
		}
		return false, &recipes.Error{Op: "run", Path: e.Path(), Reason: cause, LastErr: err}
	case errors.Is(ended, recipes.ErrRevoked):
		return lost(ended, err)
	case ended != nil && err == nil: // it stepped down
		return true, nil
	}
	return false, err
}
