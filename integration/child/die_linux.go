package child

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel kill the child when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
