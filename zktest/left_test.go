package zktest

import (
	"os"
	"os/signal"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsLeftFailsTheTest(t *testing.T) {
	for _, tc := range []struct {
		name  string
		leave func(t *testing.T, s *Server) (clean func())
		opts  []Option
		want  string
	}{
		{"Nothing", func(*testing.T, *Server) func() { return func() {} }, nil, ""},
		{"Session", func(t *testing.T, s *Server) func() {
			c := rawSession(t, s)
			c.create("/e", 1)
			c.ok(OpGetChildren, "/", true)
			return func() {}
		}, nil, `with ephemeral nodes ["/e"] and watches ["children of /"]`},
		{"SessionOfAClientThatWasCutOff", func(t *testing.T, s *Server) func() {
			rawSession(t, s)
			sess := s.Sessions()[0]
			time.Sleep(sess.Timeout / 4)
			s.Cut(sess.ID)
			synctest.Wait()
			return func() {}
		}, nil, "not connected: a client that was cut off"},
		{"Goroutine", leaveGoroutine, nil, "leaveGoroutine"},
		{"AllowedGoroutine", leaveGoroutine, []Option{AllowGoroutines()}, ""},
		{"AllowedWithSessions", leaveGoroutine, []Option{AllowOpenSessions()}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				s := Start(r, append(tc.opts, InMemory())...)
				clean := tc.leave(t, s)
				r.end()
				clean()
				if got := strings.Join(r.errors, "\n"); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

func leaveGoroutine(t *testing.T, _ *Server) func() {
	stop := make(chan struct{})
	go func() { <-stop }()
	return func() { close(stop) }
}

// A goroutine of a test that runs beside this one is none of this one's business.
func TestGoroutinesOfOthersAreNotBlamed(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	go func() { <-stop }() // before Start: whoever has started it
	r := &recorder{TB: t}
	Start(r)
	r.end()
	if len(r.errors) > 0 {
		t.Errorf("%q", r.errors)
	}
}

// The first one to ask for signals starts a goroutine that stays.
func TestSignalsLeaveNothing(t *testing.T) {
	r := &recorder{TB: t}
	Start(r)
	listen(os.Interrupt)
	r.end()
	if len(r.errors) > 0 {
		t.Errorf("%q", r.errors)
	}
}

func listen(sig os.Signal) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	signal.Stop(c)
}
