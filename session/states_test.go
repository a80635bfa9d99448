package session_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 37
func TestStatesYieldsEveryStateInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		readers := []func() []session.State{history(s), history(s)}
		var slow []session.State
		slept := make(chan struct{})
		go func() {
			defer close(slept)
			for st := range s.States(context.Background()) {
				slow = append(slow, st)
				time.Sleep(time.Hour)
			}
		}()
		want := []session.State{session.Connected}
		for range 80 {
			_, lost := holdNew(t, l)
			if err := srv.Expire(l.ID()); err != nil {
				t.Fatal(err)
			}
			lost.wait(t)
			l = life(t, s)
			want = append(want, session.Suspended, session.Lost, session.Connected)
		}
		s.Close()
		want = append(want, session.Closed)
		for _, read := range readers {
			expectStates(t, read(), want)
		}
		<-slept
		expectStates(t, slow, want)
	})
}

func expectStates(t *testing.T, got, want []session.State) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("%d states, want %d; from number %d on: %v", len(got), len(want), i, got[i:min(i+5, len(got))])
}

func TestStatesEndsWithItsContextAndWithTheLoop(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, _ := open(t, config(srv))
		n := 0
		for st := range s.States(after(t, time.Minute)) {
			if n++; st != session.Connected {
				t.Errorf("%v", st)
			}
		}
		for range s.States(t.Context()) {
			n++
			break
		}
		if n != 2 {
			t.Errorf("%d states", n)
		}
	})
}

// Whoever hears that the session is lost finds everything revoked.
func TestRevocationComesBeforeTheNewsOfTheLoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		for range 20 {
			var holds []*loss
			for range 20 {
				_, lost := holdNew(t, l)
				holds = append(holds, lost)
			}
			next, stop := iter.Pull(s.States(t.Context()))
			next() // connected, from before the loss
			srv.Expire(l.ID())
			for st, ok := next(); ok && st != session.Lost; st, ok = next() {
			}
			stop()
			for _, lost := range holds {
				if !lost.yet() {
					t.Fatal("lost was announced before a hold was told")
				}
			}
			if l.Err() == nil {
				t.Error("lost was announced while the life had no error")
			}
			<-l.Done()
			l = life(t, s)
		}
	})
}

// case 37, case 42: nobody reads anything, and the loss is still delivered.
func TestLossesWithoutReaders(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		for range 20 {
			_, lost := holdNew(t, l)
			srv.Expire(l.ID())
			lost.wait(t)
			if lost.cause != session.ErrExpired || !lost.gone {
				t.Fatalf("lost to %v (gone %v)", lost.cause, lost.gone)
			}
			old := l
			l = life(t, s)
			if l.ID() == old.ID() || s.ID() != l.ID() {
				t.Fatalf("ids %#x, %#x, %#x", old.ID(), l.ID(), s.ID())
			}
		}
	})
}
