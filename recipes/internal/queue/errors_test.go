package queue

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// Where two packages have a word for the same thing, an error matches both and says it
// once.
func TestErrorsSayItOnce(t *testing.T) {
	for _, c := range []struct {
		err  error
		is   []error
		once string
	}{
		{CheckPath("a"), []error{recipes.ErrInvalid, session.ErrInvalid}, "invalid argument"},
		{Fail("lock", "/a", session.ErrClosed), []error{recipes.ErrSessionClosed, session.ErrClosed}, "session closed"},
		{Fail("lock", "/a", &session.Error{Op: "create", Path: "/a/x", Reason: session.ErrSuspended}), []error{recipes.ErrSuspended, session.ErrSuspended}, "connection suspended"},
		{Translate(session.ErrNodeGone), []error{recipes.ErrNodeDeleted, session.ErrNodeGone}, "removed on the server"},
		{Translate(session.ErrExpired), []error{recipes.ErrSessionLost, session.ErrExpired}, "session lost: session expired"},
	} {
		for _, is := range c.is {
			if !errors.Is(c.err, is) {
				t.Errorf("%q does not match %q", c.err, is)
			}
		}
		if strings.Count(c.err.Error(), c.once) != 1 {
			t.Errorf("%q: want %q once", c.err, c.once)
		}
	}
}
