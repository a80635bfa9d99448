// Package docker is what the tests share who run servers in containers: whether
// Docker and an image are to be had, and how clients reach what is published.
package docker

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// RequireEnv names the variable which, when set to anything but "" and "0",
// turns "skipped: no server to be had" into a failure.
const RequireEnv = "LOCKKEEPER_REQUIRE_DOCKER"

// Missing skips the test because it can't have such a server, or fails it where
// the environment says that there must be servers.
func Missing(t testing.TB, server string, err error) {
	t.Helper()
	if v := os.Getenv(RequireEnv); v != "" && v != "0" {
		t.Fatalf("no %s server to be had, and %s=%s says there must be: %v", server, RequireEnv, v, err)
	}
	t.Skipf("no %s server to be had: %v", server, err)
}

// Image is the image that a kind of server runs on.
type Image struct {
	Env     string // the variable that chooses it
	Default string

	once sync.Once
	err  error
}

// Name returns the name of the image.
func (i *Image) Name() string {
	if name := os.Getenv(i.Env); name != "" {
		return name
	}
	return i.Default
}

// Available returns nil if Docker answers and the image is there or can be
// pulled. The check is made once per process; it can take as long as the pull.
func (i *Image) Available() error {
	i.once.Do(func() { i.err = i.available() })
	return i.err
}

func (i *Image) available() error {
	log.SetDefault(log.NewNoopLogger()) // it would print a page about Docker
	provider, err := Connect(log.NewNoopLogger())
	if err != nil {
		return fmt.Errorf("docker is missing or does not answer: %w", err)
	}
	defer provider.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := provider.Client().ImageInspect(ctx, i.Name()); err == nil {
		return nil
	}
	if err := provider.PullImage(ctx, i.Name()); err != nil {
		return fmt.Errorf("image %s is not here and can't be pulled (%s names another one): %w", i.Name(), i.Env, err)
	}
	return nil
}

// Connect connects to Docker. testcontainers panics on some hosts that have
// none: that is an error like the others here.
func Connect(l log.Logger) (p *testcontainers.DockerProvider, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	p, err = testcontainers.NewDockerProvider(testcontainers.WithLogger(l))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.Health(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// PublishOn returns the address of the Docker host as clients see it, and the
// one its ports are to be published on: loopback only, unless the host is remote.
func PublishOn(ctx context.Context, p *testcontainers.DockerProvider) (host, bind string, err error) {
	host, err = p.DaemonHost(ctx)
	if err != nil {
		return "", "", err
	}
	if host == "localhost" {
		host = "127.0.0.1" // one family: localhost may mean ::1 to some clients
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return host, host, nil
	}
	return host, "0.0.0.0", nil
}

// Quiet keeps testcontainers' running commentary out of a test's output.
type Quiet struct{ testing.TB }

// Logf says nothing.
func (Quiet) Logf(string, ...any) {}
