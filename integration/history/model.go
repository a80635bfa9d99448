package history

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// What can happen to a lock; the token of the grant is the output of either.
const (
	acquired = "acquired"
	ended    = "ended"
)

// lock is the state of the model: who has it, and the largest token so far.
type lock struct{ holder, last recipes.Token }

var model = porcupine.Model{
	Init: func() any { return lock{} },
	Step: func(state, input, output any) (bool, any) {
		l, token := state.(lock), output.(recipes.Token)
		switch input {
		case acquired:
			return l.holder == 0 && token > l.last, lock{token, token}
		default:
			return l.holder == token, lock{0, l.last}
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v %v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

func isReleased(g *recipes.Grant) bool { return errors.Is(g.Err(), recipes.ErrReleased) }
