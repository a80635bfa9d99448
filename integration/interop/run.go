package interop

import (
	"os/exec"
	"runtime"
)

// run starts the command, has its output read and waits for its end. What makes
// the child die with us is bound to the thread that started it: the thread must
// not end before the child does.
func run(cmd *exec.Cmd, started chan<- error, ended chan<- struct{}, read func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(ended)
	dieWithUs(cmd)
	err := cmd.Start()
	started <- err
	if err != nil {
		return
	}
	read() // to the end: Wait closes the pipe
	cmd.Wait()
}
