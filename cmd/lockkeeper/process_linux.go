package main

import "syscall"

// dieWithParent has the kernel kill the command's first process, and only that
// one, when the thread that started it is gone. The kernel drops the request for
// programs that are set-user-ID or the like.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}
