module github.com/lockkeeper/lockkeeper

go 1.26

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/go-zookeeper/zk v1.0.4
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)
