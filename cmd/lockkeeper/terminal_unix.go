//go:build unix && !aix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal on standard input, while we are in its
// foreground; nil stands for none.
type terminal struct{ fd, group int }

// ownTerminal returns nil unless it is ours to give away.
func ownTerminal() *terminal {
	fd := int(os.Stdin.Fd())
	group, err := unix.Getpgid(0)
	if err != nil {
		return nil
	}
	if front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || front != group {
		return nil
	}
	return &terminal{fd, group}
}

// give puts group into the foreground, so that it can read the terminal and gets
// what is typed, Ctrl-C included. A process that was faster and has been stopped
// for reading too early is woken.
func (t *terminal) give(group int) {
	if t == nil {
		return
	}
	if unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil {
		unix.Kill(-group, unix.SIGCONT)
	}
}

// takeBack puts us into the foreground again. SIGTTOU must be ignored.
func (t *terminal) takeBack() {
	if t != nil {
		unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.group)
	}
}
