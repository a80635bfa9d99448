module github.com/lockkeeper/lockkeeper

go 1.26

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
