package queue

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestIdentify(t *testing.T) {
	for name, tt := range map[string]struct {
		data  string
		names string
		owner int64
		want  What
		err   string // in it
	}{
		"mutex":                   {data: "lockkeeper mutex dir=5 released=7", names: "5-lock-0000000008", want: What{Recipe: "mutex"}},
		"nobody in line":          {data: "lockkeeper rwlock", want: What{Recipe: "rwlock"}},
		"container":               {data: "lockkeeper election", owner: containerOwner, want: What{Recipe: "election"}},
		"semaphore":               {data: "lockkeeper semaphore size=3", names: "resized", want: What{"semaphore", 3}},
		"semaphore without size":  {data: "lockkeeper semaphore", err: "size 0"},
		"size beyond all":         {data: "lockkeeper semaphore size=16385", err: "size 16385"},
		"group":                   {data: "lockkeeper group", names: "5-member-0000000000", err: "its recipe is group"},
		"barrier":                 {data: "lockkeeper gate", err: "its recipe is gate"},
		"flow":                    {data: "lockkeeper gate dir=5 weight=2", names: "5-lock-0000000000", err: "one flow of a fair lock"},
		"Curator's mutex":         {names: "_c_x-lock-0000000000", want: What{Recipe: "mutex"}},
		"kazoo's mutex":           {names: "x__lock__0000000000", want: What{Recipe: "mutex"}},
		"with somebody's data":    {data: "10.0.0.1", names: "x-lock-0000000000 notes", want: What{Recipe: "mutex"}},
		"Curator's rwlock":        {names: "x__READ__0000000000 x__WRIT__0000000001", want: What{Recipe: "rwlock"}},
		"ours, data overwritten":  {data: "x", names: "5-candidate-0000000000", want: What{Recipe: "election"}},
		"kazoo's read lock":       {names: "x__rlock__0000000000", err: "kazoo's"},
		"Curator's latch":         {names: "x-latch-0000000000", err: "LeaderLatch"},
		"Curator's semaphore":     {names: "x-lease-0000000000", err: "no size"},
		"members":                 {names: "x-member-0000000000", err: "group"},
		"two recipes":             {names: "x-lock-0000000000 x__WRIT__0000000001", err: "more than one recipe"},
		"nothing":                 {want: What{}},
		"ephemeral":               {owner: 77, err: "ephemeral"},
		"somebody's data":         {data: "x=1", err: "somebody else's data"},
		"a directory of locks":    {names: "orders invoices", err: `such as "invoices"`},
		"keyword without number":  {names: "lock-keeper", err: "nobody is in line"},
		"recipe of a later time":  {data: "lockkeeper carousel", err: "its recipe is carousel"},
		"the record of a flow":    {data: "lockkeeper flow start=0 used=1", err: "its recipe is flow"},
		"a lock with odd company": {data: "lockkeeper mutex", names: "notes", want: What{Recipe: "mutex"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Identify([]byte(tt.data), &zk.Stat{EphemeralOwner: tt.owner}, strings.Fields(tt.names))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || got != tt.want {
				t.Errorf("%+v, %v, want %+v, %q", got, err, tt.want, tt.err)
			}
			if vague := strings.Contains(tt.err, "such as") || strings.Contains(tt.err, "somebody else's") || strings.Contains(tt.err, "nobody"); vague != errors.Is(err, ErrNothingSaid) {
				t.Errorf("%v: ErrNothingSaid: %v, want %v", err, !vague, vague)
			}
		})
	}
}
