package zktest

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test with a server of its own in virtual time.
func bubble(t *testing.T, f func(t *testing.T, s *Server), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, Start(t, append([]Option{InMemory(), AllowOpenSessions()}, opts...)...))
	})
}
