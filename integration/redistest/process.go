package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lockkeeper/lockkeeper/integration/child"
)

// process is a server as a child of the test.
type process struct {
	program string
	args    []string
	dir     string

	mu    sync.Mutex
	child *child.Process
}

// processes returns what starts servers as processes of that program.
func processes(program string) newHost {
	return func(dir string, c config) (host, error) {
		p := &process{program: program, args: []string{"redis.conf"}, dir: dir}
		if c.sentinel {
			p.args = append(p.args, "--sentinel")
		}
		if err := os.WriteFile(filepath.Join(dir, p.args[0]), c.text(), 0o600); err != nil {
			return nil, err
		}
		if err := p.start(); err != nil {
			return nil, err
		}
		return p, nil
	}
}

func (p *process) start() error {
	out, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.program, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	c, err := child.Start(cmd, nil)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child = c
	return nil
}

func (p *process) running() *child.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

func (p *process) kill() error {
	p.running().Kill()
	return nil
}

func (p *process) pause() error           { return p.running().Pause() }
func (p *process) unpause() error         { return p.running().Unpause() }
func (p *process) ended() <-chan struct{} { return p.running().Ended() }
func (p *process) remove() error          { return p.kill() } // its directory is the test's

func (p *process) logFile() string { return filepath.Join(p.dir, "log") }

func (p *process) log() string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

// lastLines returns the end of a log.
func lastLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "")
}
