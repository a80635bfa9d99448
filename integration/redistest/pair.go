package redistest

import (
	"context"
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/link"
)

// Pair is a master and its replica, for a failover by hand.
type Pair struct {
	Master, Replica *Server
	// Link is between the two. In a hole, what is written to the master does not
	// reach the replica, and is lost when it takes over.
	Link *link.Link

	front *link.Link
}

// StartPair starts a master and a replica that has all of it.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	servers := StartSeveral(t, 2)
	p := &Pair{Master: servers[0], Replica: servers[1]}
	p.Link = link.New(t, p.Master.addr)
	p.front = link.New(t, p.Master.addr)
	p.Replica.replicate(t, p.Link.Addr())
	p.WaitReplicated(t)
	return p
}

// Addr returns the address for clients: that of whichever is the master.
func (p *Pair) Addr() string { return p.front.Addr() }

// WaitReplicated waits until the replica has what is on the master.
func (p *Pair) WaitReplicated(t testing.TB) {
	t.Helper()
	await(t, "the replica to have it all", func(ctx context.Context) (bool, error) {
		master, err := p.Master.info(ctx, "replication")
		if err != nil {
			return false, err
		}
		replica, err := p.Replica.info(ctx, "replication")
		return replica["master_link_status"] == "up" && replica["slave_repl_offset"] == master["master_repl_offset"], err
	})
}

// Failover kills the master, makes the replica the master and takes the clients
// there. With the link in a hole before, they miss there what they wrote since.
func (p *Pair) Failover(t testing.TB) {
	t.Helper()
	p.Master.Kill(t)
	p.Replica.Do(t, "REPLICAOF", "NO", "ONE")
	p.front.Redirect(p.Replica.addr)
}
