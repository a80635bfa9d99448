package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A site is where it is measured: servers, and a node there below which everything
// happens.
type site struct {
	name    string
	servers []string
	root    string
	raw     *zk.Conn // looks on, without a part in anything
	stop    func() error
	paths   atomic.Int64
}

const timeout = 30 * time.Second // of all sessions

// openSite uses the servers, if there are any, or starts one.
func openSite(ctx context.Context, servers []string, inProcess bool) (*site, error) {
	s := &site{servers: servers, root: "/lockkeeper-fairness-" + strings.ToLower(rand.Text()), stop: func() error { return nil }}
	switch {
	case inProcess:
		srv, err := zktest.New()
		if err != nil {
			return nil, err
		}
		s.name, s.servers = "zktest, in this process", []string{srv.Addr()}
		s.stop = func() error { srv.Close(); return nil }
	case len(servers) > 0:
		s.name = strings.Join(servers, ",")
	default:
		addr, stop, err := ensemble.Run(ctx, ensemble.Options{})
		if err != nil {
			return nil, fmt.Errorf("no server to be had (-servers and -inprocess are other ways): %w", err)
		}
		s.name, s.servers, s.stop = "one, in a container of "+ensemble.Image(), []string{addr}, stop
	}
	err := s.connect(ctx)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *site) connect(ctx context.Context) error {
	c, events, err := zk.Connect(s.servers, timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("the servers don't answer"))
	defer cancel()
	for up := false; !up; {
		select {
		case e := <-events:
			up = e.State == zk.StateHasSession
		case <-ctx.Done():
			c.Close()
			return fmt.Errorf("%s: %w", strings.Join(s.servers, ","), context.Cause(ctx))
		}
	}
	go func() {
		for range events { // the client's channel, which is closed with it
		}
	}()
	s.raw = c
	_, err = c.Create(s.root, nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		c.Close()
	}
	return err
}

// close removes what was made.
func (s *site) close() error {
	err := s.remove(s.root)
	s.raw.Close()
	return errors.Join(err, s.stop())
}

func (s *site) remove(path string) error {
	children, _, err := s.raw.Children(path)
	for _, c := range children {
		err = errors.Join(err, s.remove(path+"/"+c))
	}
	if err == nil {
		err = s.raw.Delete(path, -1)
	}
	if errors.Is(err, zk.ErrNoNode) { // the server removes unused containers, too
		return nil
	}
	return err
}

// path returns one that was not used yet.
func (s *site) path() string { return fmt.Sprintf("%s/%d", s.root, s.paths.Add(1)) }

// below returns how many nodes are just below a node, which may be missing.
func (s *site) below(path string) (int, error) {
	there, stat, err := s.raw.Exists(path)
	if err != nil || !there {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

// A dialer connects as session.Config has it; nil for the usual one.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// sessions opens n of them, and returns what closes them.
func (s *site) sessions(ctx context.Context, n int, dial dialer) (list []*session.Session, done func() error, err error) {
	done = func() error {
		var errs []error
		for _, one := range list {
			errs = append(errs, one.Close())
		}
		return errors.Join(errs...)
	}
	for range n {
		one, err := session.Open(ctx, session.Config{Servers: s.servers, Timeout: timeout, Dial: dial})
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		list = append(list, one)
	}
	return list, done, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}
