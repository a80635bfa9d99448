package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct {
	Servers []*Server
	ids     []string
}

// StartCluster starts a cluster and waits until every server serves its part of
// the slots and knows that the others do.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	bus := make([]string, masters)
	c := &Cluster{Servers: start(t, masters, func(i int) []string {
		port, err := docker.FreePort("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		bus[i] = port
		return []string{
			"cluster-enabled yes",
			"cluster-port " + port, // Redis 7 and later; ten thousand above may be taken
			"cluster-node-timeout 5000",
		}
	})}
	for i, s := range c.Servers {
		s.Do(t, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		s.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.ids = append(c.ids, fmt.Sprint(s.Do(t, "CLUSTER", "MYID")))
		if i > 0 {
			host, port, _ := net.SplitHostPort(s.addr)
			c.Servers[0].Do(t, "CLUSTER", "MEET", host, port, bus[i])
		}
	}
	await(t, "the cluster to be whole", func(ctx context.Context) (bool, error) {
		for _, s := range c.Servers {
			shards, err := s.admin.ClusterShards(ctx).Result()
			if err != nil || len(shards) != masters {
				return false, err
			}
			for _, shard := range shards {
				if len(shard.Slots) == 0 {
					return false, nil
				}
			}
			info, err := s.admin.ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") {
				return false, err
			}
		}
		return true, nil
	})
	return c
}

// Options returns how a client finds the cluster.
func (c *Cluster) Options() *redis.ClusterOptions {
	o := &redis.ClusterOptions{}
	for _, s := range c.Servers {
		o.Addrs = append(o.Addrs, s.addr)
	}
	return o
}

// Slot returns the slot of a key or of a sharded channel.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	return int(c.Servers[0].Do(t, "CLUSTER", "KEYSLOT", key).(int64))
}

// Owner returns the number of the server that serves the slot.
func (c *Cluster) Owner(t testing.TB, slot int) int {
	t.Helper()
	shards, err := c.Servers[0].admin.ClusterShards(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range shards {
		for _, r := range shard.Slots {
			if int64(slot) < r.Start || r.End < int64(slot) {
				continue
			}
			for i, id := range c.ids {
				if shard.Nodes[0].ID == id { // there are no replicas
					return i
				}
			}
		}
	}
	t.Fatalf("nobody serves slot %d", slot)
	return 0
}

// MoveSlot moves a slot with all its keys to server dst, as redis-cli does.
func (c *Cluster) MoveSlot(t testing.TB, slot, dst int) {
	t.Helper()
	c.MoveSlotIn(t, slot, dst, 0)
}

// MoveSlotIn is MoveSlot and takes for so long at least: meanwhile the keys that are
// there stay, and those that are not can only be made at the new place.
func (c *Cluster) MoveSlotIn(t testing.TB, slot, dst int, d time.Duration) {
	t.Helper()
	src := c.Owner(t, slot)
	if src == dst {
		t.Fatalf("slot %d is at server %d already", slot, dst)
	}
	c.Servers[dst].Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[src])
	c.Servers[src].Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[dst])
	time.Sleep(d)
	host, port, _ := net.SplitHostPort(c.Servers[dst].addr)
	for {
		keys := texts(c.Servers[src].Do(t, "CLUSTER", "GETKEYSINSLOT", slot, 100))
		if len(keys) == 0 {
			break
		}
		args := []any{"MIGRATE", host, port, "", 0, patience.Milliseconds(), "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		c.Servers[src].Do(t, args...)
	}
	// the new owner first: were it the old one, the slot would be nobody's meanwhile
	for _, i := range append([]int{dst, src}, others(dst, src)...) {
		c.Servers[i].Do(t, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[dst])
	}
}

func others(a, b int) (rest []int) {
	for i := range masters {
		if i != a && i != b {
			rest = append(rest, i)
		}
	}
	return rest
}
