//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
)

// forwarded are the signals that are passed on to the command, and that end the
// wait for the lock.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

// stops are the signals of job control.
var stops = []os.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// ignoredAtStart are those of them that were ignored when we were started.
var ignoredAtStart = slices.DeleteFunc(slices.Clone(stops), func(s os.Signal) bool { return !signal.Ignored(s) })

// heedStops undoes that stops are ignored, for the sake of a command that is about
// to be started and would inherit that from the one before. They don't stop us.
func heedStops() {
	for _, s := range stops {
		if !slices.Contains(ignoredAtStart, s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// A process is a command in a process group of its own. Signals reach the
// processes of that group: not those that have left it (setsid, or a shell with
// job control).
type process struct {
	cmd   *exec.Cmd
	group int
	tty   *terminal
	done  chan struct{}
}

// startProcess starts cmd. On Linux its first process is killed when lockkeeper
// dies; see dieWithParent.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent(&syscall.SysProcAttr{Setpgid: true})
	p := &process{cmd: cmd, tty: ownTerminal(), done: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the command
		// What dieWithParent asks for is about the thread, so keep it.
		runtime.LockOSThread()
		heedStops()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.group = cmd.Process.Pid
		p.tty.give(p.group)
		// Being stopped is what a guard must not be: trust would run out unseen.
		// Not earlier, since a command inherits what is ignored.
		signal.Ignore(stops...)
		started <- nil
		if p.tty != nil {
			go p.keepAwake() // ends with the command
		}
		cmd.Wait()
		p.tty.takeBack()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() <-chan struct{} { return p.done }

// exitCode returns the command's own code, 128+n if signal n ended it. It is
// known once ended is closed.
func (p *process) exitCode() int {
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return exitSignal + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		syscall.Kill(-p.group, n)
	}
}

// terminate also wakes what is stopped, which would not see the signal.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// empty reports whether nobody is left in the group. A group's number is not
// given to a new process while anybody is in it, so what answers is still ours
// as long as we look often.
func (p *process) empty() bool {
	return errors.Is(syscall.Kill(-p.group, 0), syscall.ESRCH)
}
