package docker

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are published below the range from which systems take the ports of
// outgoing connections (from 32768 on Linux, from 49152 elsewhere): a killed
// server's port must still be free when it comes back, and a client that dials
// it meanwhile must not happen to be given that very port and reach itself.
const firstPort, lastPort = 20000, 32000

var ports struct {
	sync.Mutex
	given map[int]bool
}

// FreePort returns a TCP port that is free on the address and that this process
// has not handed out before.
func FreePort(bind string) (string, error) {
	ports.Lock()
	defer ports.Unlock()
	var last error
	for range 100 {
		n := firstPort + rand.IntN(lastPort-firstPort)
		if ports.given[n] {
			continue
		}
		port := strconv.Itoa(n)
		l, err := net.Listen("tcp", net.JoinHostPort(bind, port))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		if ports.given == nil {
			ports.given = make(map[int]bool)
		}
		ports.given[n] = true
		return port, nil
	}
	return "", errors.Join(errors.New("no free port"), last)
}
