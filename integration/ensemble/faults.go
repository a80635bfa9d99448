package ensemble

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
)

// Kill ends server i with SIGKILL and returns when it is dead. What it had
// acknowledged is on its disk, for Start.
func (e *Ensemble) Kill(t testing.TB, i int) {
	t.Helper()
	id := e.servers[i].container.GetContainerID()
	// asked for before the kill, so that its end can't be missed
	dead := e.provider.Client().ContainerWait(t.Context(), id, client.ContainerWaitOptions{Condition: "not-running"})
	_, err := e.provider.Client().ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "SIGKILL"})
	e.check(t, i, "kill", err)
	select {
	case <-dead.Result:
	case err := <-dead.Error:
		e.check(t, i, "kill", err)
	}
}

// Start starts server i again after Kill, at the same address and with the data
// it had. It does not wait until the server serves: see WaitReady, WaitMode.
func (e *Ensemble) Start(t testing.TB, i int) {
	t.Helper()
	_, err := e.provider.Client().ContainerStart(t.Context(), e.servers[i].container.GetContainerID(), client.ContainerStartOptions{})
	e.check(t, i, "start", err)
}

// Pause stops server i from running, as a machine that hangs: its connections
// stay open, nothing is answered, and when it goes on it believes that no time
// has passed. Unpause lets it go on; the end of the test does, too.
func (e *Ensemble) Pause(t testing.TB, i int) {
	t.Helper()
	_, err := e.provider.Client().ContainerPause(t.Context(), e.servers[i].container.GetContainerID(), client.ContainerPauseOptions{})
	e.check(t, i, "pause", err)
	t.Cleanup(func() { // a container that is stopped can't be removed
		e.provider.Client().ContainerUnpause(context.Background(), e.servers[i].container.GetContainerID(), client.ContainerUnpauseOptions{})
	})
}

// Unpause lets server i go on after Pause.
func (e *Ensemble) Unpause(t testing.TB, i int) {
	t.Helper()
	_, err := e.provider.Client().ContainerUnpause(t.Context(), e.servers[i].container.GetContainerID(), client.ContainerUnpauseOptions{})
	e.check(t, i, "unpause", err)
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
	_, err := e.provider.Client().NetworkDisconnect(t.Context(), e.peers.ID,
		client.NetworkDisconnectOptions{Container: e.servers[i].container.GetContainerID()})
	e.check(t, i, "cut off", err)
}

// Heal undoes CutFromPeers: the server is back on the network, at the address
// that it had. Connections which neither side gave up go on where they stopped.
func (e *Ensemble) Heal(t testing.TB, i int) {
	t.Helper()
	_, err := e.provider.Client().NetworkConnect(t.Context(), e.peers.ID, client.NetworkConnectOptions{
		Container:      e.servers[i].container.GetContainerID(),
		EndpointConfig: e.peers.endpoint(i),
	})
	e.check(t, i, "heal", err)
}
