package ensemble

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// ImageEnv names the variable that chooses the image of the servers.
const ImageEnv = "LOCKKEEPER_ZOOKEEPER_IMAGE"

var image = docker.Image{Env: ImageEnv, Default: "zookeeper:3.9"}

// Image returns the name of the image that the servers run on.
func Image() string { return image.Name() }

// Require returns if Docker answers and the image of the servers is there or
// can be pulled. If not it skips the test, saying what is missing, or fails it
// where the environment says that servers must be there (docker.RequireEnv). The
// check is made once per process; it can take as long as the pull does.
func Require(t testing.TB) {
	t.Helper()
	if err := image.Available(); err != nil {
		docker.Missing(t, "ZooKeeper", err)
	}
}
