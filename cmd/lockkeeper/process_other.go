//go:build !unix && !windows

package main

import (
	"os"
	"os/exec"
)

// forwarded are the signals that are passed on to the command, and that end the
// wait for the lock.
var forwarded = []os.Signal{os.Interrupt}

func signalNumber(os.Signal) int { return 2 }

// A process is the command's first process alone: there are no groups here that
// could be relied on.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the command
		cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() <-chan struct{} { return p.done }
func (p *process) exitCode() int          { return p.cmd.ProcessState.ExitCode() }
func (p *process) signal(s os.Signal)     { p.cmd.Process.Signal(s) }
func (p *process) terminate()             { p.signal(os.Interrupt) }
func (p *process) kill()                  { p.cmd.Process.Kill() }
func (p *process) empty() bool            { return true }
