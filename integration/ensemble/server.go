package ensemble

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// server is one ZooKeeper server in a container of its own.
type server struct {
	container testcontainers.Container
	addr      string // as clients see it
}

// run creates and starts server i. It does not wait until the server serves: in
// an ensemble no one does before the others are up.
func (e *Ensemble) run(ctx context.Context, i int, env map[string]string) (*server, error) {
	host, bind, err := docker.PublishOn(ctx, e.provider)
	if err != nil {
		return nil, err
	}
	bindTo, err := netip.ParseAddr(bind)
	if err != nil {
		return nil, err
	}
	port, err := docker.FreePort(bind)
	if err != nil {
		return nil, err
	}
	req := testcontainers.ContainerRequest{
		Image:        Image(),
		Env:          env,
		ExposedPorts: []string{"2181/tcp"},
		HostConfigModifier: func(hc *container.HostConfig) {
			hc.PortBindings = network.PortMap{
				network.MustParsePort("2181/tcp"): {{HostIP: bindTo, HostPort: port}},
			}
		},
	}
	if e.peers != nil {
		// Clients come in by the default bridge, so that the peers' network can
		// be taken away without them noticing.
		req.Networks = []string{e.peers.Name, "bridge"}
		req.EndpointSettingsModifier = func(m map[string]*network.EndpointSettings) {
			m[e.peers.Name].IPAMConfig = e.peers.endpoint(i).IPAMConfig
		}
	}
	c, err := e.provider.RunContainer(ctx, req)
	if err != nil {
		if c != nil {
			err = fmt.Errorf("%w (removed: %v)", err, testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)))
		}
		return nil, err
	}
	return &server{container: c, addr: net.JoinHostPort(host, port)}, nil
}

// logTail returns the end of what the server printed.
func (s *server) logTail() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := s.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	text, _ := io.ReadAll(r)
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "")
}
