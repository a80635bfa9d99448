// Package ensemble runs real ZooKeeper servers in containers for tests, one or
// three of them, and does to them what happens to servers: they are killed and
// come back, stop for a while, or lose each other while clients still reach them.
//
// Whatever a test starts ends with the test. If the test process itself dies
// before, the containers carry testcontainers' label "org.testcontainers.sessionId",
// by which its reaper, or whoever chose the id (TESTCONTAINERS_SESSION_ID),
// removes them.
package ensemble

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// startup bounds the time from the first request to Docker until all servers
// serve. Seen on two busy cores: 1 to 8 s.
const startup = 2 * time.Minute

// Ensemble is a set of running ZooKeeper servers, numbered from 0. Its methods
// may be called from several goroutines, as long as no two of them do something
// to the same server; those which take a testing.TB fail that test on an error,
// and so have to be called on the test's goroutine.
type Ensemble struct {
	provider *testcontainers.DockerProvider
	peers    *peerNetwork // nil for a single server
	servers  []*server
}

// Single starts one server and waits until it serves. It skips or fails the
// test, as Require does, where that can't be done.
func Single(t testing.TB, opts Options) *Ensemble { return start(t, 1, opts) }

// Three starts an ensemble of three servers and waits until they are one leader
// and two followers. It skips or fails the test, as Require does, where that
// can't be done.
func Three(t testing.TB, opts Options) *Ensemble { return start(t, 3, opts) }

func start(t testing.TB, size int, opts Options) *Ensemble {
	t.Helper()
	Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), startup)
	defer cancel()

	provider, err := docker.Connect(log.TestLogger(docker.Quiet{TB: t}))
	if err != nil {
		t.Fatalf("docker: %v", err)
	}
	t.Cleanup(func() { provider.Close() })
	e := &Ensemble{provider: provider, servers: make([]*server, size)}
	var members []string
	if size > 1 {
		e.peers, err = newPeerNetwork(ctx, size)
		if err != nil {
			t.Fatalf("network of the servers: %v", err)
		}
		t.Cleanup(func() { e.peers.remove(t) })
		members = e.peers.hosts()
	}
	var (
		wg   sync.WaitGroup
		errs = make([]error, size)
	)
	for i := range size {
		wg.Go(func() {
			e.servers[i], errs[i] = e.run(ctx, i, opts.withDefaults().env(i+1, members))
		})
	}
	wg.Wait()
	t.Cleanup(func() { e.terminate(t) })
	for i, err := range errs {
		if err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
	}
	e.WaitReady(t)
	return e
}

// Servers returns the addresses, host:port, at which clients reach the servers,
// in the order of their numbers. They stay the same for the life of the
// ensemble, also when a server is killed and started again.
func (e *Ensemble) Servers() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr
	}
	return addrs
}

// Server returns the address of server i.
func (e *Ensemble) Server(i int) string { return e.servers[i].addr }

// terminate removes the containers, all at once. If the test failed, the last
// lines of the servers' logs go to the test's.
func (e *Ensemble) terminate(t testing.TB) {
	var wg sync.WaitGroup
	for i, s := range e.servers {
		if s == nil {
			continue
		}
		wg.Go(func() {
			if t.Failed() {
				t.Logf("server %d, last lines of its log:\n%s", i, s.logTail())
			}
			if err := testcontainers.TerminateContainer(s.container, testcontainers.StopTimeout(0)); err != nil {
				t.Errorf("server %d is left behind: %v", i, err)
			}
		})
	}
	wg.Wait()
}
