package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A manifold is an error that can't be compared, such as a validator returns.
type manifold []error

func (m manifold) Error() string { return errors.Join(m...).Error() }

// calls are those of the public methods that take a context and may wait.
func calls(s *session.Session, l *session.Life, h *session.Hold) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get":      func(ctx context.Context) error { _, _, err := l.Get(ctx, "/x"); return err },
		"Exists":   func(ctx context.Context) error { _, err := l.Exists(ctx, "/x"); return err },
		"Children": func(ctx context.Context) error { _, _, err := l.Children(ctx, "/x"); return err },
		"Multi": func(ctx context.Context) error {
			_, err := l.Multi(ctx, &zk.CheckVersionRequest{Path: "/x", Version: -1})
			return err
		},
		"EnsureContainer": func(ctx context.Context) error { return l.EnsureContainer(ctx, "/x/y", nil) },
		"Watch":           func(ctx context.Context) error { _, err := l.Watch(ctx, "/x"); return err },
		"CreateSequential": func(ctx context.Context) error {
			_, err := l.CreateSequential(ctx, "/x-", []byte(time.Now().String()))
			return err
		},
		"Prove":  func(ctx context.Context) error { return l.Prove(ctx, "/x") },
		"Verify": func(ctx context.Context) error { return h.Verify(ctx) },
		"Hold": func(ctx context.Context) error {
			_, err := l.Hold(ctx, "/x", 0, nil, func(error, bool) {})
			return err
		},
	}
}

// case 21, case 9
func TestEveryCallEndsWithItsContext(t *testing.T) {
	states := map[string]func(*zktest.Server, int64){
		"disconnected": func(srv *zktest.Server, id int64) { srv.Refuse(true); srv.Cut(id) },
		"black hole":   func(srv *zktest.Server, id int64) { srv.BlackHole(0, zktest.Both) },
		"half a hole":  func(srv *zktest.Server, id int64) { srv.BlackHole(0, zktest.ToClient) },
		"reconnecting into a hole": func(srv *zktest.Server, id int64) {
			srv.BlackHole(0, zktest.Both)
			srv.Cut(id)
		},
	}
	for name, disturb := range states {
		for call := range calls(nil, nil, nil) {
			t.Run(name+"/"+call, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zktest.Server) {
					s, l := open(t, config(srv))
					h, _ := holdNew(t, l)
					disturb(srv, l.ID())
					time.Sleep(time.Second)
					if call == "Hold" {
						h.Drop()
						time.Sleep(timeout * 8 / 10) // so that it has to ask
					}
					cause := manifold{errors.New("enough")}
					ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
					defer cancel()
					start := time.Now()
					err := calls(s, l, h)[call](ctx)
					var enough manifold
					if took := time.Since(start); !errors.As(err, &enough) || took != 50*time.Millisecond {
						t.Errorf("%v after %v", err, took)
					}
				}, zktest.AllowOpenSessions())
			})
		}
	}
}

// case 21: a call under a context that has ended does nothing.
func TestContextThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		h, _ := holdNew(t, l)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		synctest.Wait() // the hold's own watch
		srv.ResetCounts()
		for name, call := range calls(s, l, h) {
			if name == "Hold" {
				continue // where nothing is asked there is nothing to wait for
			}
			if err := call(ctx); !errors.Is(err, cause) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := s.Life(ctx); !errors.Is(err, cause) {
			t.Errorf("Life: %v", err)
		}
		for range s.States(ctx) {
			t.Error("States yields under a context that has ended")
		}
		synctest.Wait()
		if n := srv.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
