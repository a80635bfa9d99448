package zktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is one ZooKeeper server, standing alone. All its methods may be called
// at any time from any goroutine; none of them waits for a client.
//
// In a testing/synctest bubble, make the server inside the bubble, with
// InMemory.
type Server struct {
	opts     options
	name     string
	log      *slog.Logger
	started  time.Time
	listener net.Listener // nil with InMemory
	wg       sync.WaitGroup

	// mu guards everything below. It is held for short computations only,
	// never while waiting.
	mu          sync.Mutex
	closed      bool
	tree        *tree
	sessions    map[int64]*session
	lastSession int64
	conns       map[*conn]struct{}
	accepted    int64 // how many connections there ever were
	watches     watches
	alarms      map[*alarm]struct{}
	lags        map[*lag]struct{} // of sessions whose reads are stale
	counts      Counts
	faults      faults
	change      chan struct{} // closed at the next change of state; nil if nobody waits
}

// ErrClosed is returned for what is asked of a server after Close.
var ErrClosed = errors.New("zktest: server closed")

var servers atomic.Int64

// New starts a server. It is ready when New returns. The caller closes it.
// Errors: options that don't fit together, an address that can't be listened
// on.
func New(opts ...Option) (*Server, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	n := servers.Add(1)
	s := &Server{
		opts: o,
		// A name that looks like an address is what no client tries to resolve.
		name:     fmt.Sprintf("127.%d.%d.%d:2181", 64+n>>16&63, n>>8&255, n&255),
		log:      o.logger,
		started:  time.Now(),
		tree:     newTree(),
		sessions: map[int64]*session{},
		// Ids differ between the servers of one process, so that one server's
		// session is unknown to the next.
		lastSession: 1<<56 | n<<32,
		conns:       map[*conn]struct{}{},
		watches:     newWatches(),
		alarms:      map[*alarm]struct{}{},
		lags:        map[*lag]struct{}{},
		faults:      newFaults(),
	}
	if !o.inMemory {
		if s.listener, err = net.Listen("tcp", o.listen); err != nil {
			return nil, fmt.Errorf("zktest: %w", err)
		}
		s.wg.Go(s.accept)
	}
	s.mu.Lock()
	s.scheduleReaping()
	s.mu.Unlock()
	return s, nil
}

// Start is New for tests: the server is closed by t.Cleanup, after the clean-ups
// that the test registers later than this call. The test then fails if anything
// of its clients is left: a session that is still open, with the ephemeral nodes
// and watches that it keeps, or a goroutine that was started after this call by
// the goroutine that made it, or by one that it had started, and that does not end
// within a few seconds. A client that was closed in an orderly way leaves
// nothing; one that was cut off can't close its session, which is left until it
// expires: wait for that (in a bubble, time.Sleep of the session timeout costs
// nothing), or call Expire. AllowOpenSessions and AllowGoroutines ask for less.
//
// Goroutines are told by a pprof label, so tests may run in parallel.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	if !s.opts.allowOpen && !s.opts.allowGoroutines {
		markGoroutine(t)
	}
	t.Cleanup(func() { s.checkLeft(t) })
	return s
}

// Addr returns host:port of the TCP listener. If there is none, it is a made-up
// address of the loopback network that is unique in this process: only Dial gets
// there.
func (s *Server) Addr() string {
	if s.listener == nil {
		return s.name
	}
	return s.listener.Addr().String()
}

// Dial connects to this server, whatever the address: in memory if the server
// is InMemory, else over TCP. It does not wait for the handshake. While Refuse
// is on, and after Close, it fails with ECONNREFUSED.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: err}
	}
	s.mu.Lock()
	refused := s.closed || s.faults.refuse
	if refused || s.listener != nil {
		s.mu.Unlock()
		if refused {
			return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address),
				Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	}
	defer s.mu.Unlock()
	client, server := newPipe("127.0.0.1:0", s.name)
	s.serve(server)
	return client, nil
}

// DialTimeout is Dial in the shape that go-zookeeper's WithDialer takes.
func (s *Server) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.Dial(ctx, network, address)
}

func (s *Server) accept() {
	for {
		nc, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("accept", "error", err)
			continue
		}
		s.mu.Lock()
		if s.closed || s.faults.refuse {
			s.mu.Unlock()
			reset(nc)
			continue
		}
		s.serve(nc)
		s.mu.Unlock()
	}
}

// Close ends all connections and waits for every goroutine that the server
// started. Sessions are not closed: to the clients it is as if the server had
// crashed. What the tree was can still be looked at. Close is idempotent, and
// waits for nobody but a callback given to OnRequest.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		if s.listener != nil {
			s.listener.Close()
		}
		for a := range s.alarms {
			a.stop()
		}
		for c := range s.conns {
			c.drop()
		}
		s.stirred()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// begin starts a txn. Also a txn that fails takes a zxid, as on the real
// server.
func (s *Server) begin(session int64, ids []identity) *txn {
	s.tree.zxid++
	return &txn{s: s, tree: s.tree, zxid: s.tree.zxid, now: time.Now().UnixMilli(), session: session, ids: ids}
}

// end completes a txn: on success the watches hear of it, else nothing has
// happened.
func (tx *txn) end(code Code) {
	if code != codeOK {
		tx.rollback()
		return
	}
	for _, ch := range tx.changes {
		tx.s.publish(ch)
	}
}

// publish tells the connections of a change, except those whose view of the
// tree has not come to it yet.
func (s *Server) publish(ch change) {
	for l := range s.lags {
		l.missed = append(l.missed, ch)
	}
	for c := range s.watches.listeners(ch) {
		if c.lag() == nil {
			s.watches.notify(c, ch)
		}
	}
}

// stirred wakes those who wait for a state. Called with the server locked.
func (s *Server) stirred() {
	if s.change != nil {
		close(s.change)
		s.change = nil
	}
}

func hex(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }
