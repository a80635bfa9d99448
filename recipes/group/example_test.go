package group_test

import (
	"context"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes/group"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func ExampleGroup_Members() {
	srv, err := zktest.New() // a server in this process
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}})
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	workers, err := group.New(sess, "/workers")
	if err != nil {
		panic(err)
	}
	me, err := workers.Join(ctx, []byte("10.0.0.7:8080"))
	if err != nil {
		panic(err)
	}
	for members, err := range workers.Members(ctx) {
		if err != nil {
			panic(err) // the last element
		}
		fmt.Println(len(members), "there")
		if len(members) == 0 {
			break
		}
		fmt.Println(string(members[0].Data), members[0].Mine)
		if err := me.Leave(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// 1 there
	// 10.0.0.7:8080 true
	// 0 there
}
