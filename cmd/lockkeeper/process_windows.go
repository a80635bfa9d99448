package main

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// forwarded are the signals that are passed on to the command, and that end the
// wait for the lock: Ctrl-C, and the closing of the console.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

// A process is a command in a job of its own: what it starts belongs to the job,
// except what it started in the moment before it was put there. The job ends
// with lockkeeper, also when that is killed.
type process struct {
	cmd  *exec.Cmd
	job  windows.Handle // 0 if there is none: then only the first process is killed
	done chan struct{}
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	p := &process{cmd: cmd, job: newJob(), done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		if p.job != 0 {
			windows.CloseHandle(p.job)
		}
		return nil, err
	}
	if p.job != 0 {
		cmd.Process.WithHandle(func(h uintptr) {
			windows.AssignProcessToJobObject(p.job, windows.Handle(h))
		})
	}
	go func() { // ends with the command
		cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// newJob returns a job whose processes are killed when its last handle, ours, is
// closed; 0 if there is none to be had.
func newJob() windows.Handle {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return 0
	}
	return job
}

func (p *process) ended() <-chan struct{} { return p.done }

func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// signal sends Ctrl-Break: a process group can be sent nothing else.
func (p *process) signal(os.Signal) {
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.cmd.Process.Pid))
}

func (p *process) terminate() { p.signal(os.Interrupt) }

func (p *process) kill() {
	if p.job == 0 || windows.TerminateJobObject(p.job, 1) != nil {
		p.cmd.Process.Kill()
	}
}

// empty says no: whoever is left is killed at the end of the grace.
func (p *process) empty() bool { return p.job == 0 }
