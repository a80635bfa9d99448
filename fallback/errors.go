package fallback

import (
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// ErrNotReplicated: fewer replicas acknowledged the grant than [WaitReplicas] asks for.
// The lock was given back.
var ErrNotReplicated = errors.New("too few replicas acknowledged the lock")

// errHolderGone: the hold under which another was to be let in is not there.
var errHolderGone = errors.New("the holder is gone")

// ErrNoQuorum: too few servers of a [Redlock] answered in time.
var ErrNoQuorum = errors.New("no majority of the servers answered")

var errNoClient = fmt.Errorf("%w: the client is nil: want one that New returned", recipes.ErrInvalid)
