package zktest

import (
	"io"
	"strings"
	"testing"
)

func TestFourLetterWords(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		c.ok(OpGetData, "/e", true)
		c.ok(OpGetChildren, "/e", true)
		ask := func(word string) string {
			nc, err := s.Dial(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			io.WriteString(nc, word)
			answer, err := io.ReadAll(nc)
			if err != nil {
				t.Fatal(err)
			}
			return string(answer)
		}
		id := hex(c.ID)
		for word, want := range map[string][]string{
			"ruok": {"imok"},
			"isro": {"rw"},
			"srvr": {"Zookeeper version: 3.8.0", "\nMode: standalone\n", "\nNode count: 6\n"},
			"stat": {"\nClients:\n /127.0.0.1:", "\nMode: standalone\n"},
			"envi": {"zookeeper.version=3.8.0"},
			"conf": {"tickTime=2000\n", "maxSessionTimeout=40000\n"},
			"mntr": {"zk_server_state\tstandalone\n", "zk_ephemerals_count\t1\n", "zk_watch_count\t2\n", "zk_global_sessions\t1\n"},
			"cons": {"sid=" + id + ",lop=getChildren,", ",to=10000,"},
			"dump": {"Session Sets (1)/(1):\n", "\t" + id + "\n", "Sessions with Ephemerals (1):\n" + id + ":\n\t/e\n"},
			"wchs": {"1 connections watching 1 paths\nTotal watches:1\n"},
			"wchc": {id + "\n\t/e\n"},
			"wchp": {"/e\n\t" + id + "\n"},
		} {
			answer := ask(word)
			for _, w := range want {
				if !strings.Contains(answer, w) {
					t.Errorf("%s: no %q in %q", word, w, answer)
				}
			}
		}
		if answer := ask("nope"); answer != "" {
			t.Errorf("a word that nobody knows: %q", answer)
		}
	})
}
