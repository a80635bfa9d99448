package zktest

import "fmt"

// word answers a four-letter word.
func (s *Server) word(w string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch w {
	case "ruok":
		return "imok", true
	case "isro":
		return "rw", true
	case "srvr":
		return fmt.Sprintf("Zookeeper version: 3.8.0-zktest, built on 2022-02-25 08:49 UTC\n"+
			"Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n"+
			"Zxid: %#x\nMode: standalone\nNode count: %d\n",
			s.counts.Total(), s.counts.Total(), len(s.conns), s.tree.zxid, len(s.tree.nodes)), true
	case "envi":
		return "Environment:\nzookeeper.version=3.8.0-zktest, built on 2022-02-25 08:49 UTC\n", true
	}
	return "", false
}
