package fallback

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// fate is what is known of a request.
type fate int

const (
	answered  fate = iota // it was carried out, and here is the answer
	refused               // it was not, and won't be: err says why
	postponed             // it was not, for a reason that may pass
	unknown               // it may have been, or may still be
)

// passing are the errors of a server that is about to be one that works: it starts,
// has become a replica, or its slot moves. OOM and MISCONF pass when somebody mends
// them.
var passing = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS", "BUSY",
	"OOM", "MISCONF", "max number of clients", "NOSCRIPT",
}

func fateOf(err error) fate {
	if err == nil {
		return answered
	}
	var re redis.Error
	if errors.As(err, &re) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		for _, prefix := range passing {
			if says(err, prefix) {
				return postponed
			}
		}
		if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
			return postponed
		}
		return refused
	}
	var op *net.OpError
	switch {
	case errors.Is(err, redis.ErrClosed):
		return refused
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return postponed
	case errors.As(err, &op) && op.Op == "dial":
		return postponed
	}
	return unknown
}

// says reports whether the server's error has that code. An error inside a script may
// come wrapped in one of the script: always before Redis 7.
func says(err error, code string) bool {
	if redis.HasErrorPrefix(err, code) {
		return true
	}
	inScript := redis.HasErrorPrefix(err, "Error ") || redis.HasErrorPrefix(err, "user_script")
	return inScript && (strings.Contains(err.Error(), ": "+code+" ") || strings.Contains(err.Error(), ": -"+code+" "))
}

// translate gives an error of the service the name that the contract has for it.
func translate(err error) error {
	for prefix, name := range map[string]error{
		"WRONGTYPE": recipes.ErrConflict,
		"NOPERM":    recipes.ErrPermission,
		"NOAUTH":    recipes.ErrPermission,
		"WRONGPASS": recipes.ErrPermission,
	} {
		if says(err, prefix) {
			return &named{name, err}
		}
	}
	return err
}

// named is an error of the service under a name of the contract.
type named struct{ name, err error }

func (e *named) Error() string   { return e.name.Error() + ": " + e.err.Error() }
func (e *named) Unwrap() []error { return []error{e.name, e.err} }
