package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A library is one way to lock.
type library struct {
	name string
	open func() (client, error)
	sent func(context.Context) (int, error) // how many commands the server was sent; nil: not known
}

// A client is what one process would have.
type client struct {
	lock  func(ctx context.Context, key string) (unlock func() error, err error)
	close func()
}

// once returns a function that makes one lock object for each key, as a program would
// that uses a lock again and again.
func once[L any](new func(key string) (L, error)) func(key string) (L, error) {
	var mu sync.Mutex
	made := map[string]L{}
	return func(key string) (L, error) {
		mu.Lock()
		defer mu.Unlock()
		if l, ok := made[key]; ok {
			return l, nil
		}
		l, err := new(key)
		if err == nil {
			made[key] = l
		}
		return l, err
	}
}

// rounds is how many turns the libraries take.
const rounds = 5

// inTurns has the libraries take turns with f, which measures for the given time.
func inTurns(ctx context.Context, libs []library, each time.Duration, f func(lib int, round int, d time.Duration) error) error {
	for round := range rounds {
		for i := range libs {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := f(i, round, each/rounds); err != nil {
				return fmt.Errorf("%s: %w", libs[i].name, err)
			}
		}
	}
	return nil
}

func openAll(libs []library, n int) (clients [][]client, stop func(), err error) {
	stop = func() {
		for _, list := range clients {
			for _, c := range list {
				c.close()
			}
		}
	}
	for _, lib := range libs {
		var list []client
		for range n {
			c, err := lib.open()
			if err != nil {
				stop()
				return nil, nil, fmt.Errorf("%s: %w", lib.name, err)
			}
			list = append(list, c)
		}
		clients = append(clients, list)
	}
	return clients, stop, nil
}

func pair(ctx context.Context, c client, key string) error {
	unlock, err := c.lock(ctx, key)
	if err != nil {
		return err
	}
	return unlock()
}

// counter counts the commands of one library over several turns.
type counter struct{ commands, pairs int }

func (n *counter) over(ctx context.Context, lib library, f func() (pairs int, err error)) error {
	var before, after int
	var err error
	if lib.sent != nil {
		if before, err = lib.sent(ctx); err != nil {
			return err
		}
	}
	pairs, err := f()
	if err != nil {
		return err
	}
	if lib.sent != nil {
		if after, err = lib.sent(ctx); err != nil {
			return err
		}
	}
	n.commands += after - before
	n.pairs += pairs
	return nil
}

func (n *counter) each(lib library) string {
	if lib.sent == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n.commands)/float64(max(1, n.pairs)))
}

func uncontended(ctx context.Context, libs []library, each time.Duration) ([]row, error) {
	clients, stop, err := openAll(libs, 1)
	if err != nil {
		return nil, err
	}
	defer stop()
	took := make([][]time.Duration, len(libs))
	counts := make([]counter, len(libs))
	err = inTurns(ctx, libs, each, func(i, round int, d time.Duration) error {
		return counts[i].over(ctx, libs[i], func() (n int, err error) {
			for end := time.Now().Add(d); time.Now().Before(end); n++ {
				began := time.Now()
				if err := pair(ctx, clients[i][0], "bench-alone"); err != nil {
					return n, err
				}
				took[i] = append(took[i], time.Since(began))
			}
			return n, nil
		})
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	first := percentile(took[0], 50)
	for i, lib := range libs {
		p50 := percentile(took[i], 50)
		rows = append(rows, row{lib.name, []cell{
			{"p50", p50.Round(time.Microsecond).String()},
			{"p99", percentile(took[i], 99).Round(time.Microsecond).String()},
			{"time, times ours", fmt.Sprintf("%.2f", float64(p50)/float64(first))},
			{"commands", counts[i].each(lib)},
		}})
	}
	return rows, nil
}

func parallel(ctx context.Context, libs []library, each time.Duration) ([]row, error) {
	clients, stop, err := openAll(libs, 1)
	if err != nil {
		return nil, err
	}
	defer stop()
	counts := make([]counter, len(libs))
	err = inTurns(ctx, libs, each, func(i, round int, d time.Duration) error {
		return counts[i].over(ctx, libs[i], func() (int, error) {
			var n atomic.Int64
			errs := make(chan error, 64)
			var wg sync.WaitGroup
			end := time.Now().Add(d)
			for caller := range 64 {
				wg.Go(func() {
					key := fmt.Sprintf("bench-own-%d", caller)
					for time.Now().Before(end) {
						if err := pair(ctx, clients[i][0], key); err != nil {
							errs <- err
							return
						}
						n.Add(1)
					}
				})
			}
			wg.Wait()
			select {
			case err := <-errs:
				return 0, err
			default:
				return int(n.Load()), nil
			}
		})
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, lib := range libs {
		rows = append(rows, row{lib.name, []cell{
			{"a second", fmt.Sprintf("%.0f", float64(counts[i].pairs)/each.Seconds())},
			{"rate, times ours", fmt.Sprintf("%.2f", float64(counts[i].pairs)/float64(counts[0].pairs))},
			{"commands", counts[i].each(lib)},
		}})
	}
	return rows, nil
}

// patience is how long a waiter is given when all others have gone.
const patience = 2 * time.Second

func handover(ctx context.Context, libs []library, each time.Duration) ([]row, error) {
	const n = 16
	clients, stop, err := openAll(libs, n)
	if err != nil {
		return nil, err
	}
	defer stop()
	took := make([][]time.Duration, len(libs))
	shares := make([][n]int, len(libs))
	forgotten := make([]atomic.Int32, len(libs)) // waiters
	counts := make([]counter, len(libs))
	err = inTurns(ctx, libs, each, func(i, round int, d time.Duration) error {
		return counts[i].over(ctx, libs[i], func() (int, error) {
			key := fmt.Sprintf("bench-hot-%d", round)
			var mu sync.Mutex // of what follows; whoever holds the lock takes it
			var released time.Time
			total := 0
			errs := make(chan error, n)
			var wg sync.WaitGroup
			end := time.Now().Add(d)
			ctx, cancel := context.WithDeadline(ctx, end.Add(patience))
			defer cancel()
			for c := range n {
				wg.Go(func() {
					for time.Now().Before(end) {
						unlock, err := clients[i][c].lock(ctx, key)
						if errors.Is(err, context.DeadlineExceeded) {
							forgotten[i].Add(1)
							return
						}
						if err != nil {
							errs <- err
							return
						}
						now := time.Now()
						mu.Lock()
						if !released.IsZero() {
							took[i] = append(took[i], now.Sub(released))
						}
						shares[i][c]++
						total++
						released = time.Now()
						mu.Unlock()
						if err := unlock(); err != nil {
							errs <- err
							return
						}
					}
				})
			}
			wg.Wait()
			select {
			case err := <-errs:
				return 0, err
			default:
				return total, nil
			}
		})
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, lib := range libs {
		rows = append(rows, row{lib.name, []cell{
			{"a second", fmt.Sprintf("%.0f", float64(counts[i].pairs)/each.Seconds())},
			{"rate, times ours", fmt.Sprintf("%.2f", float64(counts[i].pairs)/float64(counts[0].pairs))},
			{"p50", percentile(took[i], 50).Round(time.Microsecond).String()},
			{"p99", percentile(took[i], 99).Round(time.Microsecond).String()},
			{"commands", counts[i].each(lib)},
			{"least share", fmt.Sprint(slices.Min(shares[i][:]))},
			{"largest", fmt.Sprint(slices.Max(shares[i][:]))},
			{"never woken", fmt.Sprint(forgotten[i].Load())},
		}})
	}
	return rows, nil
}

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
