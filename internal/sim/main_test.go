package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	// The client library takes three megabytes for each connection, and gives them
	// back soon: collecting them more seldom saves a third of the time.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
