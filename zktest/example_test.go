package zktest_test

import (
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// A server for a demo; a test would call Start.
func ExampleNew() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	client, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if _, err := client.Create("/jobs", []byte("hello"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(srv.Children("/"))

	// The reply is lost: the client can't know that the node was made.
	srv.LoseReply(zktest.OpCreate, 1)
	_, err = client.Create("/jobs/1", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err, srv.Exists("/jobs/1"))
	// Output:
	// [jobs zookeeper]
	// zk: connection closed true
}
