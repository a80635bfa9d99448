package ensemble

import (
	"fmt"
	"strings"
	"time"
)

// Options of an ensemble. The zero value of a field stands for its default.
type Options struct {
	// TickTime is ZooKeeper's unit of time; sessions expire at multiples of it.
	// Default 200 ms: short, yet fair to a server on a busy machine.
	TickTime time.Duration
	// InitLimit is the number of ticks that a follower may take to connect to
	// the leader and copy its state. Default 50.
	InitLimit int
	// SyncLimit is the number of ticks after which leader and follower give
	// each other up when nothing comes from the other. Default 10.
	SyncLimit int
	// MinSessionTimeout and MaxSessionTimeout bound what the servers grant.
	// Defaults: two ticks, and one minute.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// ContainerCheck is the interval at which empty containers (nodes, not
	// Docker's) are removed. Default: ZooKeeper's, one minute.
	ContainerCheck time.Duration
}

// withDefaults returns o with the defaults filled in.
func (o Options) withDefaults() Options {
	set(&o.TickTime, 200*time.Millisecond)
	set(&o.InitLimit, 50)
	set(&o.SyncLimit, 10)
	set(&o.MinSessionTimeout, 2*o.TickTime)
	set(&o.MaxSessionTimeout, time.Minute)
	set(&o.ContainerCheck, time.Minute)
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// env returns the variables of the official image for member id of an ensemble
// at the given addresses; with none, for a server that stands alone.
func (o Options) env(id int, members []string) map[string]string {
	config := []string{
		fmt.Sprintf("minSessionTimeout=%d", o.MinSessionTimeout.Milliseconds()),
		fmt.Sprintf("maxSessionTimeout=%d", o.MaxSessionTimeout.Milliseconds()),
		// we kill processes, not machines: what was written to a file is safe
		"forceSync=no",
		"preAllocSize=1024",
		"extendedTypesEnabled=true",
	}
	env := map[string]string{
		"ZOO_MY_ID":                  fmt.Sprint(id),
		"ZOO_TICK_TIME":              fmt.Sprint(o.TickTime.Milliseconds()),
		"ZOO_INIT_LIMIT":             fmt.Sprint(o.InitLimit),
		"ZOO_SYNC_LIMIT":             fmt.Sprint(o.SyncLimit),
		"ZOO_MAX_CLIENT_CNXNS":       "0",
		"ZOO_ADMINSERVER_ENABLED":    "false",
		"ZOO_4LW_COMMANDS_WHITELIST": "*",
		"JVMFLAGS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms16m " +
			fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", o.ContainerCheck.Milliseconds()),
	}
	if len(members) > 0 {
		lines := make([]string, len(members))
		for i, host := range members {
			lines[i] = fmt.Sprintf("server.%d=%s:2888:3888;2181", i+1, host)
		}
		env["ZOO_SERVERS"] = strings.Join(lines, " ")
		env["ZOO_STANDALONE_ENABLED"] = "false"
	}
	env["ZOO_CFG_EXTRA"] = strings.Join(config, " ")
	return env
}
