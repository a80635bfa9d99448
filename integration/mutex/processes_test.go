package mutex_test

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/integration/worker"
)

func TestProcessesTakeTurns(t *testing.T) {
	const processes, sessions, clients, cycles = 3, 3, 2, 25
	e := ensemble.Three(t, ensemble.Options{})
	path, w := e.LockPath(t), witness.New(t)
	j := worker.Job{
		Servers: e.Servers(), Path: path, Witness: w.Addr(), Timeout: 30 * time.Second,
		Sessions: sessions, Clients: clients, Cycles: cycles, Patience: await.Patience,
	}
	start := time.Now()
	var workers []*worker.Process
	for range processes {
		workers = append(workers, worker.Start(t, j))
	}
	for _, p := range workers {
		if err := p.Wait(); err != nil {
			t.Errorf("worker: %v", err)
		}
	}
	const want = processes * sessions * clients * cycles
	if w.Uses() != want {
		t.Errorf("the lock was had %d times, want %d", w.Uses(), want)
	}
	t.Logf("%d cycles of %d clients in %v", want, processes*sessions*clients, time.Since(start))
}

func TestHoldersProcessKilled(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path, w := e.LockPath(t), witness.New(t)
	m := newMutex(t, ensemble.Open(t, 10*time.Second, e.Servers()...), path)
	entered := w.Entered()
	holder := worker.Start(t, worker.Job{
		Servers: e.Servers(), Path: path, Witness: w.Addr(), Timeout: 2 * time.Second,
		Sessions: 1, Clients: 1, Cycles: 1, Keep: true, Patience: await.Patience,
	})
	<-entered
	waiter := await.Later(t, m.Lock)
	await.InLine(t, m, 2)
	holder.Kill()
	start := time.Now()
	g := waiter.Grant(t)
	t.Logf("process killed: next grant after %v", time.Since(start))
	v, err := witness.Visit(w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	v.Enter(g.Token()) // which the witness compares with the dead holder's
	await.Release(t, g)
}
