package ensemble

import (
	"context"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// Kill ends server i with SIGKILL and returns when it is dead. What it had
// acknowledged is on its disk, for Start.
func (e *Ensemble) Kill(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "kill", i, func(ctx context.Context, c client.APIClient, id string) error {
		// asked for before the kill, so that its end can't be missed
		dead := c.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: "not-running"})
		if _, err := c.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
			return err
		}
		select {
		case <-dead.Result:
			return nil
		case err := <-dead.Error:
			return err
		}
	})
}

// Start starts server i again after Kill, at the same address and with the data
// it had. It does not wait until the server serves: see WaitReady, WaitMode.
func (e *Ensemble) Start(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "start", i, func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
}

// Pause stops server i from running, as a machine that hangs: its connections
// stay open, nothing is answered, and when it goes on it believes that no time
// has passed. Unpause lets it go on; the end of the test does, too.
func (e *Ensemble) Pause(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "pause", i, func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
	t.Cleanup(func() { // a container that is stopped can't be removed; it may go on already
		e.provider.Client().ContainerUnpause(context.Background(), e.servers[i].container.GetContainerID(), client.ContainerUnpauseOptions{})
	})
}

// Unpause lets server i go on after Pause.
func (e *Ensemble) Unpause(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "unpause", i, func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// CutFromPeers takes server i off the network that the servers share. Clients
// still reach it. No connection is closed by that: bytes between the server and
// its peers vanish, and each side finds out by its own clock only, after
// SyncLimit ticks.
//
// Until then a follower is a trap: it goes on answering reads and pings, while
// its leader lets the sessions that hang on it expire. A leader that is cut off
// goes on believing in its office for as long, but can commit nothing.
func (e *Ensemble) CutFromPeers(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "cut off", i, func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.NetworkDisconnect(ctx, e.peers.ID, client.NetworkDisconnectOptions{Container: id})
		return err
	})
}

// Heal undoes CutFromPeers: the server is back on the network, at the address
// that it had. Connections which neither side gave up go on where they stopped.
func (e *Ensemble) Heal(t testing.TB, i int) {
	t.Helper()
	e.docker(t, "heal", i, func(ctx context.Context, c client.APIClient, id string) error {
		_, err := c.NetworkConnect(ctx, e.peers.ID, client.NetworkConnectOptions{Container: id, EndpointConfig: e.peers.endpoint(i)})
		return err
	})
}

// docker has Docker do something to server i, also in a test's cleanup.
func (e *Ensemble) docker(t testing.TB, what string, i int, do func(ctx context.Context, c client.APIClient, id string) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := do(ctx, e.provider.Client(), e.servers[i].container.GetContainerID()); err != nil {
		t.Fatalf("%s server %d: docker: %v", what, i, err)
	}
}
