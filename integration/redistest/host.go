package redistest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

const (
	// ImageEnv names the variable that chooses the image of the servers.
	ImageEnv = "LOCKKEEPER_REDIS_IMAGE"
	// ServerEnv names the variable that chooses a redis-server program: servers
	// are then plain processes.
	ServerEnv = "LOCKKEEPER_REDIS_SERVER"
)

var image = docker.Image{Env: ImageEnv, Default: "redis:7"}

// A host is what one server runs in.
type host interface {
	start() error
	kill() error // with SIGKILL; returns when it is dead
	pause() error
	unpause() error
	ended() <-chan struct{} // closed when the server started last has ended
	log() string            // the end of what it printed
	remove() error
}

// config is what a server is started with.
type config struct {
	lines    []string
	sentinel bool
}

func (c config) text() []byte { return []byte(strings.Join(c.lines, "\n") + "\n") }

// newHost starts a server. dir is an empty directory of its own.
type newHost func(dir string, c config) (host, error)

// Require returns if Redis servers can be started, and what starts them: in
// containers that share the host's network, if Docker and the image are there or
// can be pulled; as processes, if ServerEnv names a program, or there is no
// container to be had and a redis-server can be found. If there is neither it
// skips the test, saying what is missing, or fails it where the environment says
// that servers must be there (docker.RequireEnv).
func Require(t testing.TB) newHost {
	t.Helper()
	if program := os.Getenv(ServerEnv); program != "" {
		return processes(program)
	}
	err := image.Available()
	if err == nil {
		return newContainer
	}
	program, missing := exec.LookPath("redis-server")
	if missing == nil {
		return processes(program)
	}
	docker.Missing(t, "Redis", errors.Join(err, missing))
	return nil
}
