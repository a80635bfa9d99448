package redisconformance

import "net"

// A Network is what one client reaches one server by, for tests that have several.
type Network struct{ n *network }

// NewNetwork returns one that is whole.
func NewNetwork() *Network { return &Network{newNetwork()} }

// Dial returns a dialer that goes through the network.
func (n *Network) Dial(server func() (net.Conn, error)) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		c, err := server()
		if err != nil {
			return nil, err
		}
		return n.n.join(c)
	}
}

// Cut has nothing get through, without notice to either side.
func (n *Network) Cut() { n.n.cut() }

// Heal has everything arrive that was sent meanwhile.
func (n *Network) Heal() { n.n.heal() }

// OnRequest has f called with every request, before it goes on; nil ends that.
func (n *Network) OnRequest(f func()) { n.n.setOnStep(f) }

// End closes all connections, and waits for what serves them.
func (n *Network) End() { n.n.end() }
