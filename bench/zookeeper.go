package main

import (
	"context"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

func zookeeperLibraries(addr string) []library {
	servers := strings.Split(addr, ",")
	return []library{
		{
			name: "lockkeeper/mutex on ZooKeeper",
			open: func() (client, error) {
				s, err := session.Open(context.Background(), session.Config{Servers: servers})
				if err != nil {
					return client{}, err
				}
				locks := once(func(key string) (*mutex.Mutex, error) { return mutex.New(s, "/"+key) })
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						m, err := locks(key)
						if err != nil {
							return nil, err
						}
						g, err := m.Lock(ctx)
						if err != nil {
							return nil, err
						}
						return func() error { return g.Release(context.Background()) }, nil
					},
					close: func() { s.Close() },
				}, nil
			},
		},
		{
			name: "go-zookeeper's own lock",
			open: func() (client, error) {
				c, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(silent{}))
				if err != nil {
					return client{}, err
				}
				return client{
					lock: func(ctx context.Context, key string) (func() error, error) {
						l := zk.NewLock(c, "/"+key+"-raw", zk.WorldACL(zk.PermAll))
						if err := l.Lock(); err != nil {
							return nil, err
						}
						return l.Unlock, nil
					},
					close: c.Close,
				}, nil
			},
		},
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}
