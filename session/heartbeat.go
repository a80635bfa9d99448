package session

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// checksPerBeat bounds a heartbeat's size: with more holds, their nodes are
// checked in turn. One check is enough to prove that the session lives.
const checksPerBeat = 128

// heartbeats keeps the trust window open while something is held.
func (l *Life) heartbeats() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		l.mu.Lock()
		holding := len(l.holds) > 0
		due := l.win.proof.Add(l.win.heartbeat())
		l.mu.Unlock()
		wait := time.Hour
		if holding {
			wait = time.Until(due)
		}
		if wait <= 0 {
			l.beat()
			if l.ctx.Err() != nil {
				return
			}
			continue
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-l.kickHeartbeat:
		case <-l.ctx.Done():
			return
		}
	}
}

// beat has version checks of held nodes committed. It returns when they are, or
// when one of the nodes was found missing and its hold lost, or when the life is
// over. A transaction of checks alone goes through the quorum, changes nothing
// and wakes no watcher.
func (l *Life) beat() {
	var checked []*Hold
	res, err := repeat(l.ctx, l, "heartbeat", "", func(c *zk.Conn) ([]zk.MultiResponse, error) {
		checked = l.nextToCheck()
		if len(checked) == 0 {
			return nil, nil
		}
		ops := make([]any, len(checked))
		for i, h := range checked {
			ops[i] = &zk.CheckVersionRequest{Path: l.Full(h.path), Version: -1}
		}
		return l.commit(c, ops...)
	})
	if err == nil {
		return
	}
	if !errors.Is(err, zk.ErrNoNode) {
		if l.ctx.Err() == nil {
			l.log.Warn("heartbeat refused", "error", err)
			t := time.NewTimer(l.Timeout() / 24)
			defer t.Stop()
			select {
			case <-t.C:
			case <-l.ctx.Done():
			}
		}
		return
	}
	for i, r := range res {
		if errors.Is(r.Error, zk.ErrNoNode) && i < len(checked) {
			checked[i].lose(ErrNodeGone, true)
			return
		}
	}
}

// nextToCheck returns the next holds in turn.
func (l *Life) nextToCheck() []*Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.round) == 0 {
		for h := range l.holds {
			l.round = append(l.round, h)
		}
	}
	var out []*Hold
	for len(l.round) > 0 && len(out) < checksPerBeat {
		h := l.round[0]
		l.round = l.round[1:]
		if _, ok := l.holds[h]; ok {
			out = append(out, h)
		}
	}
	return out
}
