package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

func (q *Queue) fail(op string, err error) error { return Fail(op, q.path, err) }

// Fail puts err into the words of the contract; nil stays nil.
func Fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	e := &recipes.Error{Op: op, Path: path, Reason: err}
	var se *session.Error
	if errors.As(err, &se) {
		e.Reason, e.LastErr = se.Reason, se.LastErr
	}
	e.Reason = Translate(e.Reason)
	return e
}

// Removed says what the outcome of a removal means for the release that asked for it. If
// somebody else had removed the node, the grant was lost, though nobody had noticed.
func Removed(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: %w", recipes.ErrRevoked, recipes.ErrNodeDeleted)
	}
	return Translate(err)
}

// Both returns an error that is both, and says only once what both say.
func Both(as, err error) error {
	if strings.Contains(err.Error(), as.Error()) {
		return both{err, as}
	}
	return fmt.Errorf("%w: %w", as, err)
}

type both struct {
	error
	as error
}

func (b both) Unwrap() []error { return []error{b.as, b.error} }

// placeLost is the error where a hold was lost for a reason before its grant was handed
// out: it says no more than that, and that one may queue again.
func placeLost(cause error) error { return both{cause, errPlaceLost} }

// CheckPath refuses, with recipes.ErrInvalid, what can't be the path of a recipe.
func CheckPath(path string) error {
	if err := session.ValidatePath(path); err != nil {
		return Both(recipes.ErrInvalid, err)
	}
	return nil
}

// Translate maps what the session says to the contract's errors.
func Translate(err error) error {
	wrap := func(as error) error { return Both(as, err) }
	for _, over := range []error{session.ErrExpired, session.ErrTrustOver, session.ErrUnreachable, session.ErrReplaced, session.ErrAuthFailed} {
		if errors.Is(err, over) {
			return wrap(recipes.ErrSessionLost)
		}
	}
	for _, already := range []error{recipes.ErrSessionLost, recipes.ErrSessionClosed, recipes.ErrSuspended} {
		if errors.Is(err, already) {
			return err
		}
	}
	switch {
	case errors.Is(err, session.ErrClosed):
		return wrap(recipes.ErrSessionClosed)
	case errors.Is(err, session.ErrSuspended):
		return wrap(recipes.ErrSuspended)
	case errors.Is(err, session.ErrNodeGone), errors.Is(err, errPlaceLost):
		return wrap(recipes.ErrNodeDeleted)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL):
		return wrap(recipes.ErrPermission)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return wrap(recipes.ErrConflict)
	}
	return err
}
