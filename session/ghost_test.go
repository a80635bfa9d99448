package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// cases 9, 21: also where the handshake is under way and nobody answers.
func TestOpenEndsWithItsContext(t *testing.T) {
	for name, fault := range map[string]func(srv *zktest.Server){
		"refused":    func(srv *zktest.Server) { srv.Refuse(true) },
		"black hole": func(srv *zktest.Server) { srv.BlackHole(0, zktest.Both) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				fault(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 1700*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := session.Open(ctx, config(srv))
				if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took < 1700*time.Millisecond || took > 1750*time.Millisecond {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// case 51: only a connection that is up and does not answer is waited for.
func TestCloseInEveryState(t *testing.T) {
	for name, state := range map[string]struct {
		fault func(srv *zktest.Server)
		want  time.Duration
	}{
		"connected":      {func(srv *zktest.Server) {}, 0},
		"black hole":     {func(srv *zktest.Server) { srv.BlackHole(0, zktest.Both) }, time.Second},
		"just cut":       {func(srv *zktest.Server) { srv.Refuse(true); srv.Cut(0) }, 0},
		"disconnected":   {func(srv *zktest.Server) { srv.Refuse(true); srv.Cut(0); time.Sleep(time.Second) }, 0},
		"in a handshake": {func(srv *zktest.Server) { srv.BlackHole(0, zktest.Both); srv.Cut(0); time.Sleep(time.Second) }, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				s, _ := open(t, config(srv))
				state.fault(srv)
				start := time.Now()
				s.Close()
				if took := time.Since(start); took != state.want {
					t.Errorf("took %v, want %v", took, state.want)
				}
			}, zktest.AllowOpenSessions())
		})
	}
}
