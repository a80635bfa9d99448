package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// These tests run in virtual time: what is said to happen at a moment happens
// exactly then.

const testTimeout = 12 * time.Second

// fakeLease is a grant whose window the test moves.
type fakeLease struct {
	mu    sync.Mutex
	until time.Time
	err   error
	done  chan struct{}
	// verify is what asking the ensemble does; by default there is no answer.
	verify func(*fakeLease)
}

func newLease(left time.Duration) *fakeLease {
	return &fakeLease{until: time.Now().Add(left), done: make(chan struct{})}
}

func (l *fakeLease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Until(l.until))
}

func (l *fakeLease) trust(left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(left)
}

func (l *fakeLease) Verify(ctx context.Context) error {
	if l.verify != nil {
		l.verify(l)
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (l *fakeLease) Done() <-chan struct{} { return l.done }

func (l *fakeLease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *fakeLease) revoke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = recipes.ErrRevoked
	close(l.done)
}

// fakeCommand is a group that notes when it was sent what.
type fakeCommand struct {
	start        time.Time
	done         chan struct{}
	obeys        bool          // its first process ends when told to
	stray        bool          // another process of its group does not
	lingers      time.Duration // is how long that is there after it was killed
	mu           sync.Mutex
	log          []string
	killed, over bool
	killedAt     time.Time
}

func newCommand() *fakeCommand {
	return &fakeCommand{start: time.Now(), done: make(chan struct{})}
}

func (c *fakeCommand) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+" "+time.Since(c.start).String())
}

func (c *fakeCommand) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.done)
	}
}

func (c *fakeCommand) ended() <-chan struct{} { return c.done }
func (c *fakeCommand) signal(s os.Signal)     { c.note(s.String()) }

func (c *fakeCommand) terminate() {
	c.note("terminate")
	if c.obeys {
		c.end()
	}
}

func (c *fakeCommand) kill() {
	c.note("kill")
	c.mu.Lock()
	c.killed, c.killedAt = true, time.Now()
	c.mu.Unlock()
	c.end()
}

func (c *fakeCommand) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && (!c.stray || c.killed && time.Since(c.killedAt) >= c.lingers)
}

func TestGuard(t *testing.T) {
	const (
		grace = 2 * time.Second
		lead  = testTimeout / 40 // 300ms
	)
	for _, tt := range []struct {
		name string
		// play does what happens around the guard; the window is 6s wide at first.
		play     func(g *guard, l *fakeLease, c *fakeCommand)
		want     []string
		wantErr  error
		wantTook time.Duration
	}{
		{
			name:     "CommandEnds",
			play:     func(g *guard, l *fakeLease, c *fakeCommand) { time.Sleep(time.Second); c.end() },
			wantTook: time.Second,
		}, {
			name:    "NoNewsIgnored",
			want:    []string{"terminate 4s", "kill 5.7s"},
			wantErr: errTrustLow, wantTook: 6*time.Second - lead,
		}, {
			name:    "NoNewsObeyed",
			play:    func(g *guard, l *fakeLease, c *fakeCommand) { c.obeys = true },
			want:    []string{"terminate 4s"},
			wantErr: errTrustLow, wantTook: 4 * time.Second,
		}, {
			name: "HeartbeatsKeepItGoing",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				for range 100 {
					time.Sleep(2 * time.Second)
					l.trust(testTimeout / 2)
				}
				c.end()
			},
			wantTook: 200 * time.Second,
		}, {
			// A window that is low for want of frames is renewed by asking.
			name: "AskingKeepsItGoing",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				l.mu.Lock()
				l.verify = func(l *fakeLease) { time.Sleep(time.Millisecond); l.trust(g.grace + time.Millisecond*700) }
				l.mu.Unlock()
				time.Sleep(time.Minute)
				c.end()
			},
			wantTook: time.Minute,
		}, {
			// It was told to end, so it has to, as fast as it was told.
			name: "TrustRecoversTooLate",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				time.Sleep(4500 * time.Millisecond)
				l.trust(time.Hour)
			},
			want:    []string{"terminate 4s", "kill 5.7s"},
			wantErr: errTrustLow, wantTook: 6*time.Second - lead,
		}, {
			name:    "Revoked",
			play:    func(g *guard, l *fakeLease, c *fakeCommand) { time.Sleep(time.Second); l.revoke() },
			want:    []string{"kill 1s"},
			wantErr: recipes.ErrRevoked, wantTook: time.Second,
		}, {
			name: "RevokedDuringGrace",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				time.Sleep(4500 * time.Millisecond)
				l.revoke()
			},
			want:    []string{"terminate 4s", "kill 4.5s"},
			wantErr: recipes.ErrRevoked, wantTook: 4500 * time.Millisecond,
		}, {
			name:    "NoGrace",
			play:    func(g *guard, l *fakeLease, c *fakeCommand) { g.grace = 0 },
			want:    []string{"kill 5.7s"},
			wantErr: errTrustLow, wantTook: 6*time.Second - lead,
		}, {
			name: "MaxHold",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				l.trust(time.Hour)
				g.holdEnd = time.Now().Add(10 * time.Second)
			},
			want:    []string{"terminate 8s", "kill 9.7s"},
			wantErr: errHoldOver, wantTook: 10*time.Second - lead,
		}, {
			name:    "StrayIsSwept",
			play:    func(g *guard, l *fakeLease, c *fakeCommand) { c.obeys, c.stray = true, true },
			want:    []string{"terminate 4s", "kill 5.7s"},
			wantErr: errTrustLow, wantTook: 6*time.Second - lead,
		}, {
			name: "StrayIsSweptOnRevocation",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				c.obeys, c.stray = true, true
				time.Sleep(5 * time.Second)
				l.revoke()
			},
			want:    []string{"terminate 4s", "kill 5s"},
			wantErr: recipes.ErrRevoked, wantTook: 5 * time.Second,
		}, {
			// The lock is not given up while anybody is left of those that were killed.
			name: "KilledIsWaitedFor",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				c.stray, c.lingers = true, 100*time.Millisecond
			},
			want:    []string{"terminate 4s", "kill 5.7s"},
			wantErr: errTrustLow, wantTook: 5800 * time.Millisecond,
		}, {
			name: "NobodyReapsKilled",
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				c.obeys, c.stray, c.lingers = true, true, time.Hour
			},
			want:    []string{"terminate 4s", "kill 5.7s"},
			wantErr: errTrustLow, wantTook: 6 * time.Second,
		}, {
			name: "StrayIsLeftAlone", // by a command that ends by itself
			play: func(g *guard, l *fakeLease, c *fakeCommand) {
				c.stray = true
				time.Sleep(time.Second)
				c.end()
			},
			wantTook: time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newLease(testTimeout/2), newCommand()
				g := &guard{lease: l, cmd: c, timeout: testTimeout, grace: grace}
				if tt.play != nil {
					go tt.play(g, l, c)
					synctest.Wait() // what is done before the first sleep comes first
				}
				start := time.Now()
				err := g.watch()
				if took := time.Since(start); took.Truncate(10*time.Millisecond) != tt.wantTook {
					t.Errorf("returned after %v, want %v", took, tt.wantTook)
				}
				if !errors.Is(err, tt.wantErr) {
					t.Errorf("returned %v, want %v", err, tt.wantErr)
				}
				if !slices.Equal(c.log, tt.want) {
					t.Errorf("sent %q, want %q", c.log, tt.want)
				}
				synctest.Wait()
			})
		})
	}
}

func TestGuardForwardsSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLease(testTimeout/2), newCommand()
		signals := make(chan os.Signal)
		g := &guard{lease: l, cmd: c, signals: signals, timeout: testTimeout, grace: time.Second}
		go func() {
			signals <- os.Interrupt
			time.Sleep(testTimeout/2 - time.Second/2)
			signals <- os.Interrupt // while it is being ended, too
		}()
		g.watch()
		want := []string{"interrupt 0s", "terminate 5s", "interrupt 5.5s", "kill 5.7s"}
		if !slices.Equal(c.log, want) {
			t.Errorf("sent %q, want %q", c.log, want)
		}
	})
}

// The window may be all but over when a long wait for the lock has ended.
func TestGuardWidens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := newLease(time.Second)
		l.verify = func(l *fakeLease) { asked++; l.trust(time.Duration(asked) * 1500 * time.Millisecond) }
		g := &guard{lease: l, timeout: testTimeout, grace: 2 * time.Second}
		if err := g.widen(); err != nil || asked != 2 {
			t.Errorf("widen: %v after %d questions, want nil after 2", err, asked)
		}
		l.revoke()
		if err := g.widen(); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("widen of a lost lock: %v", err)
		}
	})
}

// No answer at all: the command is not started, and we do not wait for ever.
func TestGuardWidensInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guard{lease: newLease(time.Second), timeout: testTimeout, grace: 2 * time.Second}
		if err := g.widen(); err == nil {
			t.Error("widen: nil, want an error")
		}
	})
}
