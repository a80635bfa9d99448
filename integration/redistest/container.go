package redistest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// box is a server in a container. It shares the host's network: so all servers
// reach each other, and the links between them, at the addresses that clients
// use, as Sentinel and Cluster want it.
type box struct {
	provider  *testcontainers.DockerProvider
	container testcontainers.Container

	mu   sync.Mutex
	dead chan struct{}
}

func newContainer(_ string, c config) (host, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	provider, err := docker.Connect(log.NewNoopLogger())
	if err != nil {
		return nil, err
	}
	const file = "/redis.conf"
	req := testcontainers.ContainerRequest{
		Image: image.Name(),
		// not the official image's entry point, under which the server is
		// another user, who may not rewrite the file (Sentinel does)
		Entrypoint:         []string{"redis-server", file},
		Files:              []testcontainers.ContainerFile{{Reader: bytes.NewReader(c.text()), ContainerFilePath: file, FileMode: 0o600}},
		HostConfigModifier: func(hc *container.HostConfig) { hc.NetworkMode = "host" },
	}
	if c.sentinel {
		req.Cmd = []string{"--sentinel"}
	}
	b := &box{provider: provider}
	b.container, err = provider.CreateContainer(ctx, req)
	if err == nil {
		err = b.start()
	}
	if err != nil {
		return nil, fmt.Errorf("%w (removed: %v)", err, b.remove())
	}
	return b, nil
}

// docker has Docker do something to the container.
func (b *box) docker(do func(ctx context.Context, c client.APIClient, id string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return do(ctx, b.provider.Client(), b.container.GetContainerID())
}

func (b *box) start() error {
	return b.docker(func(ctx context.Context, c client.APIClient, id string) error {
		// asked for before the start, so that no end can be missed
		wait, cancel := context.WithCancel(context.Background())
		exit := c.ContainerWait(wait, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		dead := make(chan struct{})
		go func() {
			defer cancel()
			defer close(dead)
			select {
			case <-exit.Result:
			case <-exit.Error:
			}
		}()
		if _, err := c.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			cancel()
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.dead = dead
		return nil
	})
}

func (b *box) ended() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dead
}

func (b *box) kill() error {
	return b.docker(func(ctx context.Context, c client.APIClient, id string) error {
		select {
		case <-b.ended(): // Docker refuses to kill what has ended
			return nil
		default:
		}
		if _, err := c.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
			return err
		}
		select {
		case <-b.ended():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (b *box) signal(name string) error {
	return b.docker(func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: name})
		return err
	})
}

func (b *box) pause() error   { return b.signal("SIGSTOP") }
func (b *box) unpause() error { return b.signal("SIGCONT") }

func (b *box) log() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := b.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

func (b *box) remove() error {
	defer b.provider.Close()
	if b.container == nil {
		return nil
	}
	return testcontainers.TerminateContainer(b.container, testcontainers.StopTimeout(0))
}
