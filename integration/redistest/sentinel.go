package redistest

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinels is a master and a replica under the eyes of three Sentinels.
type Sentinels struct {
	// Servers are the first master and its replica.
	Servers []*Server
	// Watchers are the Sentinels.
	Watchers []*Server
}

// MasterName is what the Sentinels call the master.
const MasterName = "main"

// replicaUser is whom the replica calls itself at the master.
const replicaUser = "replica"

// StartSentinels starts two servers and three Sentinels, and waits until all of
// them know each other. A master that does not answer for a second is replaced.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{Servers: start(t, 2, func(int) []string {
		return []string{
			"user " + replicaUser + " on >" + replicaUser + " ~* &* +@all",
			"masteruser " + replicaUser,
			"masterauth " + replicaUser,
		}
	})}
	s.Servers[1].replicate(t, s.Servers[0].addr)
	await(t, "the replica to be there", func(ctx context.Context) (bool, error) {
		info, err := s.Servers[1].info(ctx, "replication")
		return info["master_link_status"] == "up", err
	})
	host, port, _ := net.SplitHostPort(s.Servers[0].addr)
	s.Watchers = launch(t, 3, func(_ int, own string) (config, error) {
		return config{sentinel: true, lines: []string{
			"port " + own,
			fmt.Sprintf("sentinel monitor %s %s %s 2", MasterName, host, port),
			fmt.Sprintf("sentinel down-after-milliseconds %s 1000", MasterName),
			fmt.Sprintf("sentinel failover-timeout %s 10000", MasterName),
		}}, nil
	})
	await(t, "the Sentinels to know each other", func(ctx context.Context) (bool, error) {
		for _, w := range s.Watchers {
			m, err := w.master(ctx)
			if err != nil || m["num-slaves"] != "1" || m["num-other-sentinels"] != "2" || m["flags"] != "master" {
				return false, err
			}
		}
		return true, nil
	})
	return s
}

// master asks a Sentinel what it knows of the master.
func (s *Server) master(ctx context.Context) (map[string]string, error) {
	v, err := s.admin.Do(ctx, "SENTINEL", "MASTER", MasterName).Result()
	if err != nil {
		return nil, err
	}
	fields, m := texts(v), make(map[string]string)
	for i := 0; i+1 < len(fields); i += 2 {
		m[fields[i]] = fields[i+1]
	}
	return m, nil
}

// replicate makes the server a replica.
func (s *Server) replicate(t testing.TB, master string) {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatal(err)
	}
	s.Do(t, "REPLICAOF", host, port)
}

// Options returns how a client finds the master: by the Sentinels.
func (s *Sentinels) Options() *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: MasterName}
	for _, w := range s.Watchers {
		o.SentinelAddrs = append(o.SentinelAddrs, w.addr)
	}
	return o
}

// Master returns the server that is the master by the word of all Sentinels; it
// waits until they agree.
func (s *Sentinels) Master(t testing.TB) *Server {
	t.Helper()
	var master *Server
	await(t, "the Sentinels to agree on a master", func(ctx context.Context) (bool, error) {
		master = nil
		for _, w := range s.Watchers {
			m, err := w.master(ctx)
			if err != nil {
				return false, err
			}
			said := s.at(net.JoinHostPort(m["ip"], m["port"]))
			if said == nil || master != nil && master != said {
				return false, nil
			}
			master = said
		}
		return true, nil
	})
	return master
}

func (s *Sentinels) at(addr string) *Server {
	for _, server := range s.Servers {
		if server.addr == addr {
			return server
		}
	}
	return nil
}

// CutReplica takes the replica's access to the master away: what is written from
// now on is lost when the replica takes over.
func (s *Sentinels) CutReplica(t testing.TB) {
	t.Helper()
	s.Servers[0].Do(t, "ACL", "DELUSER", replicaUser)
	await(t, "the replica to be cut off", func(ctx context.Context) (bool, error) {
		info, err := s.Servers[0].info(ctx, "replication")
		return info["connected_slaves"] == "0", err
	})
}

// Failover kills the first master and waits until the replica has taken over.
func (s *Sentinels) Failover(t testing.TB) {
	t.Helper()
	s.Servers[0].Kill(t)
	await(t, "the replica to take over", func(ctx context.Context) (bool, error) {
		info, err := s.Servers[1].info(ctx, "replication")
		return info["role"] == "master", err
	})
	if m := s.Master(t); m != s.Servers[1] {
		await(t, "the Sentinels to see that", func(context.Context) (bool, error) {
			return s.Master(t) == s.Servers[1], nil
		})
	}
}
