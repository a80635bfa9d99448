package zktest

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// version is what the server says it is.
const version = "3.8.0-zktest, built on 2022-02-25 08:49 UTC"

// words are the four-letter words that stand in the place of a handshake. Their
// answers have the form of a real server's, as far as it makes sense here.
var words = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"isro": func(*Server) string { return "rw" },
	"crst": func(*Server) string { return "Connection stats reset.\n" },
	"srst": func(*Server) string { return "Server stats reset.\n" },
	"envi": (*Server).envi,
	"conf": (*Server).conf,
	"srvr": func(s *Server) string { return "Zookeeper version: " + version + "\n" + s.figures() },
	"stat": (*Server).statWord,
	"mntr": (*Server).mntr,
	"cons": (*Server).cons,
	"dump": (*Server).dump,
	"wchs": (*Server).wchs,
	"wchc": (*Server).wchc,
	"wchp": (*Server).wchp,
}

// word answers a four-letter word.
func (s *Server) word(w string) (string, bool) {
	answer, ok := words[w]
	if !ok {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return answer(s), true
}

func (s *Server) figures() string {
	received, sent := s.packets()
	return fmt.Sprintf("Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n"+
		"Zxid: %#x\nMode: standalone\nNode count: %d\n",
		received, sent, len(s.conns), s.tree.zxid, s.nodeCount())
}

// nodeCount is one more than there are: a real server counts the root twice.
func (s *Server) nodeCount() int { return len(s.tree.nodes) + 1 }

func (s *Server) packets() (received, sent int) {
	for c := range s.conns {
		received += c.received
		sent += c.sent
	}
	return received, sent
}

func (s *Server) envi() string {
	return "Environment:\nzookeeper.version=" + version + "\nhost.name=localhost\n" +
		"java.version=none\njava.vendor=" + runtime.Version() + "\nos.name=" + runtime.GOOS + "\nos.arch=" + runtime.GOARCH + "\n"
}

func (s *Server) conf() string {
	_, port, _ := strings.Cut(s.Addr(), ":")
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataLogDir=\ntickTime=%d\nmaxClientCnxns=0\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n", port,
		s.opts.tick.Milliseconds(), s.opts.minTimeout.Milliseconds(), s.opts.maxTimeout.Milliseconds())
}

// sortedConns lists the connections in the order in which they were made.
func (s *Server) sortedConns() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.serial, b.serial) })
}

func (c *conn) line(more string) string {
	interest := 0
	if c.sess != nil {
		interest = 1
	}
	return fmt.Sprintf(" /%s[%d](queued=%d,recved=%d,sent=%d%s)\n", c.nc.RemoteAddr(), interest, len(c.queue), c.received, c.sent, more)
}

func (s *Server) statWord() string {
	var b strings.Builder
	b.WriteString("Zookeeper version: " + version + "\nClients:\n")
	for _, c := range s.sortedConns() {
		b.WriteString(c.line(""))
	}
	return b.String() + "\n" + s.figures()
}

func (s *Server) cons() string {
	var b strings.Builder
	for _, c := range s.sortedConns() {
		more := ""
		if c.sess != nil {
			more = fmt.Sprintf(",sid=%s,lop=%s,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0",
				hex(c.sess.id), c.lastOp, c.since.UnixMilli(), c.sess.timeout.Milliseconds(), c.lastXid, s.tree.zxid)
		}
		b.WriteString(c.line(more))
	}
	return b.String() + "\n"
}

func (s *Server) mntr() string {
	var b strings.Builder
	received, sent := s.packets()
	ephemerals, size := 0, 0
	for path, n := range s.tree.nodes {
		size += len(path) + len(n.data)
	}
	for _, o := range s.tree.ephemerals {
		ephemerals += len(o.paths)
	}
	for _, f := range []struct {
		name  string
		value any
	}{
		{"version", version}, {"server_state", "standalone"},
		{"ephemerals_count", ephemerals}, {"num_alive_connections", len(s.conns)},
		{"avg_latency", "0.0"}, {"min_latency", 0}, {"max_latency", 0},
		{"outstanding_requests", 0}, {"znode_count", s.nodeCount()},
		{"global_sessions", len(s.sessions)}, {"local_sessions", 0},
		{"packets_sent", sent}, {"packets_received", received},
		{"watch_count", s.watches.entries()}, {"approximate_data_size", size},
		{"uptime", time.Since(s.started).Milliseconds()},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", f.name, f.value)
	}
	return b.String()
}

// dump lists the sessions by the time at which they expire, and what they own.
func (s *Server) dump() string {
	var b strings.Builder
	byExpiry := map[time.Time][]*session{}
	for _, sess := range s.sortedSessions() {
		at := sess.expires.Truncate(time.Second)
		byExpiry[at] = append(byExpiry[at], sess)
	}
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(byExpiry), len(s.sessions))
	for _, at := range slices.SortedFunc(maps.Keys(byExpiry), time.Time.Compare) {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(byExpiry[at]), at.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
		for _, sess := range byExpiry[at] {
			fmt.Fprintf(&b, "\t%s\n", hex(sess.id))
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(s.tree.ephemerals))
	for _, id := range slices.Sorted(maps.Keys(s.tree.ephemerals)) {
		fmt.Fprintf(&b, "%s:\n", hex(id))
		for _, path := range s.tree.ephemeralsOf(id) {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (1)/(%d):\n%d expire at never:\n", len(s.conns), len(s.conns))
	for _, c := range s.sortedConns() {
		var id int64
		if c.sess != nil {
			id = c.sess.id
		}
		fmt.Fprintf(&b, "\tip: /%s sessionId: %s\n", c.nc.RemoteAddr(), hex(id))
	}
	return b.String()
}
