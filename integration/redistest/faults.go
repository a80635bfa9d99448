package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// PauseWrites has the server hold back whatever writes or publishes, scripts
// included, for d or until ResumeWrites; reads are answered.
func (s *Server) PauseWrites(t testing.TB, d time.Duration) {
	t.Helper()
	s.Do(t, "CLIENT", "PAUSE", d.Milliseconds(), "WRITE")
}

// ResumeWrites ends PauseWrites.
func (s *Server) ResumeWrites(t testing.TB) {
	t.Helper()
	s.Do(t, "CLIENT", "UNPAUSE")
}

// StopExpiring makes the server remove a key whose time is over only when
// somebody touches it, as one does that has a great many of them; ResumeExpiring
// ends it.
func (s *Server) StopExpiring(t testing.TB) {
	t.Helper()
	s.Do(t, "DEBUG", "SET-ACTIVE-EXPIRE", 0)
}

// ResumeExpiring ends StopExpiring.
func (s *Server) ResumeExpiring(t testing.TB) {
	t.Helper()
	s.Do(t, "DEBUG", "SET-ACTIVE-EXPIRE", 1)
}

// KillSubscribers breaks every connection that has subscribed to something and
// returns how many there were.
func (s *Server) KillSubscribers(t testing.TB) int {
	t.Helper()
	n, _ := s.Do(t, "CLIENT", "KILL", "TYPE", "pubsub").(int64)
	return int(n)
}

// FlushScripts makes the server forget the scripts that it was given.
func (s *Server) FlushScripts(t testing.TB) {
	t.Helper()
	s.Do(t, "SCRIPT", "FLUSH", "SYNC")
}

// Fill makes the server refuse whatever needs memory, as one does that is full
// and must not evict; Empty ends it.
func (s *Server) Fill(t testing.TB) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
}

// Empty ends Fill.
func (s *Server) Empty(t testing.TB) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "maxmemory", 0)
}

// AddUser makes a user with those rights, such as "~*", "+@all", and returns its
// password. A user may use no channel unless a rule says so ("&*").
func (s *Server) AddUser(t testing.TB, name string, rules ...string) (password string) {
	t.Helper()
	password = "secret-of-" + name
	args := []any{"ACL", "SETUSER", name, "reset", "on", ">" + password}
	for _, r := range rules {
		args = append(args, r)
	}
	s.Do(t, args...)
	return password
}

// Keys returns all keys of the first database, in no order.
func (s *Server) Keys(t testing.TB) []string {
	t.Helper()
	return texts(s.Do(t, "KEYS", "*"))
}

// Channels returns the channels that somebody has subscribed to, in no order,
// those of shards included.
func (s *Server) Channels(t testing.TB) []string {
	t.Helper()
	return append(texts(s.Do(t, "PUBSUB", "CHANNELS")), texts(s.Do(t, "PUBSUB", "SHARDCHANNELS"))...)
}

// Subscribers returns the number of connections that have subscribed to
// something.
func (s *Server) Subscribers(t testing.TB) int {
	t.Helper()
	return strings.Count(fmt.Sprint(s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub")), "\n")
}

func texts(v any) []string {
	var list []string
	for _, e := range v.([]any) {
		list = append(list, fmt.Sprint(e))
	}
	return list
}
