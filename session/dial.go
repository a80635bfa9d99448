package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"
)

// dial starts the client and waits until the ensemble has confirmed the session,
// or the life ends.
func (l *Life) dial() error {
	cfg := l.s.cfg
	hosts := &hosts{life: l}
	conn, events, err := zk.Connect(cfg.Servers, cfg.Timeout,
		zk.WithDialer(hosts.dial),
		zk.WithHostProvider(hosts),
		zk.WithEventCallback(l.onEvent),
		zk.WithLogger(clientLog{l.log}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	l.conn = conn
	l.s.wg.Go(func() {
		for range events { // they were told to onEvent
		}
		close(l.clientGone)
	})
	select {
	case <-l.firstGate():
		return nil
	case <-l.done:
		l.closeClient()
		return l.Err()
	}
}

func (l *Life) firstGate() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gate
}

// onEvent is called by the client's goroutines, in the order of what happens on
// the connection, so it must not block.
func (l *Life) onEvent(e zk.Event) {
	switch {
	case e.Type == zk.EventSession && e.State == zk.StateHasSession:
		l.linkUp()
	case e.Type == zk.EventSession && e.State == zk.StateDisconnected:
		l.linkDown()
	}
}

// hosts goes round the servers, for one life. The client's own host provider
// resolves names once and for all, and makes the client pause for a second each
// time that the list begins anew.
type hosts struct {
	life    *Life
	servers []string

	mu      sync.Mutex
	next    int
	tried   int // since the last success
	backoff *backoff.ExponentialBackOff
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	h.backoff = backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(min(max(h.life.s.cfg.Timeout/20, 20*time.Millisecond), time.Second)), // a session is at stake
		backoff.WithMaxElapsedTime(0))
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. It never says that the list begins anew: that
// would make the client pause for a second.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	return server, false
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
	h.backoff.Reset()
}

// dial connects to one server, after a pause if all have been tried since the
// last success.
func (h *hosts) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if d := h.pause(); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-h.life.ctx.Done():
		}
	}
	if h.life.ctx.Err() != nil {
		return newGhost(h.life), nil
	}
	limit := h.attemptLimit()
	ctx, cancel := context.WithTimeout(h.life.ctx, limit)
	defer cancel()
	conn, err := connect(ctx, h.life.s.cfg, network, addr)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("no connection within %v: %w", limit, err)
		}
		h.life.s.note(fmt.Errorf("%s: %w", addr, err))
		return nil, err
	}
	return newWire(h.life, conn, addr, limit), nil
}

func (h *hosts) pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried++
	if h.tried > len(h.servers) && h.tried%len(h.servers) == 1%len(h.servers) {
		return h.backoff.NextBackOff()
	}
	return 0
}

// attemptLimit bounds connecting, and then the handshake, with one server, so
// that one that does not answer leaves time to try the others.
func (h *hosts) attemptLimit() time.Duration {
	t := h.life.Timeout()
	if t == 0 {
		t = h.life.s.cfg.Timeout
	}
	return min(t/3, max(t/time.Duration(2*len(h.servers)), time.Second))
}

func connect(ctx context.Context, cfg Config, network, addr string) (net.Conn, error) {
	conn, err := cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errors.New("Config.Dial returned neither a connection nor an error")
	}
	if cfg.TLS == nil {
		return conn, nil
	}
	tc := cfg.TLS
	if tc.ServerName == "" && !tc.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			conn.Close()
			return nil, err
		}
		tc = tc.Clone()
		tc.ServerName = host
	}
	secure := tls.Client(conn, tc)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// clientLog passes on what the client prints.
type clientLog struct{ log *slog.Logger }

func (c clientLog) Printf(format string, args ...any) {
	c.log.Debug("zookeeper client: " + fmt.Sprintf(format, args...))
}
