package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the command's first process, and only that
// one, when the thread that started it is gone. The kernel drops the request for
// programs that are set-user-ID or the like.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

const cldStopped = 5 // CLD_STOPPED of <signal.h>

// keepAwake continues the command whenever it is stopped, until it has ended. A
// command that is in the foreground and was stopped, with Ctrl-Z, would leave the
// terminal to nobody: we can't be stopped with it, since somebody has to guard
// the lock.
func (p *process) keepAwake() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.group, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Code != cldStopped {
			return // it has ended, which is for another to take note of
		}
		unix.Waitid(unix.P_PID, p.group, nil, unix.WSTOPPED|unix.WNOHANG, nil)
		p.signal(syscall.SIGCONT)
	}
}
