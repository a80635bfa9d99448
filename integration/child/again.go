package child

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Again returns a command that runs this test's program once more, with a job in that
// variable: its TestMain is to look there.
func Again(t testing.TB, variable string, job any) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd
}
