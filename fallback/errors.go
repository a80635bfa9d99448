package fallback

import (
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// ErrNotReplicated: fewer replicas acknowledged the grant than [WaitReplicas] asks for.
// The lock was given back.
var ErrNotReplicated = errors.New("too few replicas acknowledged the lock")

// ErrNoQuorum: too few servers of a [Redlock] answered in time.
var ErrNoQuorum = errors.New("no majority of the servers answered")

var errNoClient = fmt.Errorf("%w: want a client", recipes.ErrInvalid)
