package zktest

// Direction says which bytes vanish in a black hole.
type Direction int

// ToServer are those from the client to the server, ToClient those from the
// server to the client.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

func (d Direction) covers(other Direction) bool { return d&other != 0 }

// BlackHole makes bytes of a session's connection vanish in the given
// directions, while the connection itself stays up: nobody is told. What the
// server has queued but not yet written vanishes, too. The next connections of
// that session end in the same hole during the handshake. For the session 0 it
// is all connections, new ones included. The session expires in its time if
// nothing reaches the server.
//
// A connection that the server would close, as on expiry, stays open for a
// client that nothing reaches.
func (s *Server) BlackHole(id int64, d Direction) {
	s.locked(func() {
		s.faults.holes[id] |= d
		for _, c := range s.connsOf(id) {
			c.hole |= d
		}
	})
}

// holeFor returns the hole that waits for a new connection of a session.
func (f *faults) holeFor(id int64) Direction { return f.holes[0] | f.holes[id] }

// Heal ends every black hole, every cut-off follower and Refuse. Connections
// that were in a hole or cut off are reset: what has vanished stays lost.
func (s *Server) Heal() {
	s.locked(func() {
		s.faults.refuse = false
		clear(s.faults.holes)
		for c := range s.conns {
			if c.hole != 0 || c.cutOff != nil {
				c.cut()
			}
		}
	})
}
