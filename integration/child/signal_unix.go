//go:build unix

package child

import "syscall"

// Pause stops the process from running, with SIGSTOP: nothing in it happens, and
// the clocks go on.
func (p *Process) Pause() error { return p.process.Signal(syscall.SIGSTOP) }

// Unpause lets the process go on after Pause.
func (p *Process) Unpause() error { return p.process.Signal(syscall.SIGCONT) }
