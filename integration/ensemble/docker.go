package ensemble

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

const (
	// ImageEnv names the variable that chooses the image of the servers.
	ImageEnv = "LOCKKEEPER_ZOOKEEPER_IMAGE"
	// RequireEnv names the variable which, when set to anything but "" and
	// "0", turns "skipped: no server to be had" into a failure.
	RequireEnv = "LOCKKEEPER_REQUIRE_DOCKER"

	defaultImage = "zookeeper:3.9"
)

// Image returns the name of the image that the servers run on.
func Image() string {
	if name := os.Getenv(ImageEnv); name != "" {
		return name
	}
	return defaultImage
}

// Require returns if Docker answers and the image of the servers is there or
// can be pulled. If not it skips the test, saying what is missing, or fails it
// where the environment says that servers must be there (RequireEnv). The check
// is made once per process; it can take as long as the pull does.
func Require(t testing.TB) {
	t.Helper()
	err := available()
	switch v := os.Getenv(RequireEnv); {
	case err == nil:
	case v != "" && v != "0":
		t.Fatalf("no ZooKeeper server to be had, and %s=%s says there must be: %v", RequireEnv, v, err)
	default:
		t.Skipf("no ZooKeeper server to be had: %v", err)
	}
}

var available = sync.OnceValue(func() error {
	log.SetDefault(log.NewNoopLogger()) // it would print a page about Docker
	provider, err := newProvider(log.NewNoopLogger())
	if err != nil {
		return fmt.Errorf("docker is missing or does not answer: %w", err)
	}
	defer provider.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := provider.Client().ImageInspect(ctx, Image()); err == nil {
		return nil
	}
	if err := provider.PullImage(ctx, Image()); err != nil {
		return fmt.Errorf("image %s is not here and can't be pulled (%s names another one): %w", Image(), ImageEnv, err)
	}
	return nil
})

// newProvider connects to Docker. testcontainers panics on some hosts that have
// none: that is an error like the others here.
func newProvider(l log.Logger) (p *testcontainers.DockerProvider, err error) {
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

// publishOn returns the address of the Docker host as clients see it, and the
// one its ports are to be published on: loopback only, unless the host is remote.
func publishOn(ctx context.Context, p *testcontainers.DockerProvider) (host, bind string, err error) {
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
