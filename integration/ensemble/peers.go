package ensemble

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// peerNetwork is the network on which the servers talk to each other, and
// nothing else. It is internal, so that no published port depends on it, and
// every server has a fixed address on it, so that one which was cut off comes
// back as the same: connections that survived go on, as after a partition of a
// real network.
type peerNetwork struct {
	*testcontainers.DockerNetwork
	addrs []netip.Addr
}

// newPeerNetwork creates a network with an address for each of size servers.
func newPeerNetwork(ctx context.Context, size int) (*peerNetwork, error) {
	var last error
	for range 20 { // another test may have the same subnet
		// 198.18.0.0/15 is set aside for tests of this kind (RFC 2544), so that
		// nothing else is hidden by it. Of 16 addresses the first is the gateway's.
		base := netip.AddrFrom4([4]byte{198, byte(18 + rand.IntN(2)), byte(rand.IntN(256)), byte(rand.IntN(16) << 4)})
		n, err := tcnetwork.New(ctx, tcnetwork.WithInternal(), tcnetwork.WithIPAM(&network.IPAM{
			Config: []network.IPAMConfig{{Subnet: netip.PrefixFrom(base, 28)}},
		}))
		if err != nil {
			last = err
			continue
		}
		p := &peerNetwork{DockerNetwork: n}
		addr := base.Next()
		for range size {
			addr = addr.Next()
			p.addrs = append(p.addrs, addr)
		}
		return p, nil
	}
	return nil, fmt.Errorf("no subnet to be had: %w", last)
}

func (p *peerNetwork) hosts() []string {
	hosts := make([]string, len(p.addrs))
	for i, a := range p.addrs {
		hosts[i] = a.String()
	}
	return hosts
}

// endpoint returns the settings that give server i its address.
func (p *peerNetwork) endpoint(i int) *network.EndpointSettings {
	return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: p.addrs[i]}}
}

func (p *peerNetwork) remove(t testing.TB) {
	if err := p.Remove(context.Background()); err != nil {
		t.Errorf("network %s is left behind: %v", p.Name, err)
	}
}
