package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes/fence"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A resource refuses the write of a holder that lost its lock without noticing.
func ExampleGate() {
	srv, err := zktest.New(zktest.InMemory())
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	s, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	m, err := mutex.New(s, "/locks/report")
	if err != nil {
		panic(err)
	}

	var gate fence.Gate // of the resource
	var report string

	paused, err := m.Lock(ctx)
	if err != nil {
		panic(err)
	}
	late := paused.Token() // kept by a worker that then stands still for a while
	paused.Release(ctx)

	g, err := m.Lock(ctx)
	if err != nil {
		panic(err)
	}
	defer g.Release(ctx)
	err = gate.Do(g.Token(), func() error { report = "by the present holder"; return nil })
	fmt.Println("present holder:", err)

	err = gate.Do(late, func() error { report = "by a late one"; return nil })
	fmt.Println("late holder refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("report:", report)
	// Output:
	// present holder: <nil>
	// late holder refused: true
	// report: by the present holder
}
