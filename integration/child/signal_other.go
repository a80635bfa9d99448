//go:build !unix

package child

import "errors"

var errSignal = errors.New("processes can't be stopped and continued on this system")

// Pause does not work here.
func (p *Process) Pause() error { return errSignal }

// Unpause does not work here.
func (p *Process) Unpause() error { return errSignal }
