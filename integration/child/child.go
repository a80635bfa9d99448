// Package child runs processes that end with the one that started them.
package child

import (
	"os"
	"os/exec"
	"runtime"
)

// A Process is a running child. It dies when its parent does, where the system
// can see to that (Linux).
type Process struct {
	process *os.Process
	ended   chan struct{}
}

// Start starts the command. read, which may be nil, is to read the pipes of cmd
// to their end: it is called on a goroutine of its own, and the end of the
// process is noticed only after it has returned.
func Start(cmd *exec.Cmd, read func()) (*Process, error) {
	p := &Process{ended: make(chan struct{})}
	started := make(chan error)
	go p.run(cmd, started, read)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the command and waits for its end. What makes the child die with us
// is bound to the thread that started it: the thread must not end before the
// child does.
func (p *Process) run(cmd *exec.Cmd, started chan<- error, read func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	dieWithUs(cmd)
	err := cmd.Start()
	p.process = cmd.Process
	started <- err
	if err != nil {
		return
	}
	if read != nil {
		read()
	}
	cmd.Wait()
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the process with SIGKILL, if it still runs, and waits for its end.
func (p *Process) Kill() {
	p.process.Kill()
	<-p.ended
}
