package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// The writer is released, or its node removed, while the reader's is being made.
func TestWriterGoesWhileAReaderIsLetIn(t *testing.T) {
	for _, removed := range []bool{false, true} {
		run(t, func(e *env) {
			a := e.own()
			w := e.write(a)
			next := e.later(e.own().Lock, 2)
			ctx := context.WithoutCancel(w.Context(e.T.Context()))
			arrived, let := e.HoldRequest(zktest.OpMulti, 1)
			r := e.StartContext(ctx, a.RLock)
			locktest.Await(e.Env, arrived)
			if removed {
				e.Delete(node(w))
			} else {
				go w.Release(e.T.Context())
				synctest.Wait()
			}
			let()
			if removed { // there is nothing to be let in under: it queues
				g := next.Grant(time.Minute)
				e.waits(r)
				e.Release(g)
				e.Release(r.Grant(time.Second))
			} else { // it was first
				g := r.Grant(time.Second)
				e.waits(next)
				e.Release(g)
				e.Release(next.Grant(time.Second))
			}
			e.Empty()
		})
	}
}

// Answers and requests are lost, connections are cut, while a reader is let in. Its
// node has a name of its own, so one that exists already is its own (case 12).
func TestAnswersAreLostWhileAReaderIsLetIn(t *testing.T) {
	for name, fault := range map[string]func(e *env, s *session.Session){
		"answer":    func(e *env, s *session.Session) { e.LoseReply(zktest.OpMulti, 1) },
		"request":   func(e *env, s *session.Session) { e.LoseRequest(zktest.OpMulti, 1) },
		"twice":     func(e *env, s *session.Session) { e.LoseReply(zktest.OpMulti, 1); e.LoseReply(zktest.OpMulti, 2) },
		"both ways": func(e *env, s *session.Session) { e.LoseReply(zktest.OpMulti, 1); e.LoseRequest(zktest.OpMulti, 2) },
		"cut":       func(e *env, s *session.Session) { e.Cut(s.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				s := e.Open()
				a := e.rw(s)
				w := e.write(a)
				next := e.later(e.own().Lock, 2)
				fault(e, s)
				r := e.StartContext(w.Context(e.T.Context()), a.RLock).Grant(5 * time.Second)
				e.Queued(3) // one node, not two
				e.Release(w)
				e.waits(next)
				e.Release(r)
				e.Release(next.Grant(time.Second))
				e.Empty()
			})
		})
	}
}

// The answer is lost, and the writer's node is removed before the question is asked
// again: the reader is in.
func TestWriterIsRemovedAfterTheReadersAnswerIsLost(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		a := e.rw(s)
		w := e.write(a)
		next := e.later(e.own().Lock, 2)
		ctx := context.WithoutCancel(w.Context(e.T.Context()))
		e.LoseReply(zktest.OpMulti, 1)
		arrived, let := e.HoldRequest(zktest.OpMulti, 2)
		r := e.StartContext(ctx, a.RLock)
		locktest.Await(e.Env, arrived)
		e.Delete(node(w))
		let()
		g := r.Grant(5 * time.Second)
		e.waits(next)
		e.Release(g)
		e.Release(next.Grant(time.Second))
		e.Empty()
	})
}

// case 8: ctx ends at each moment while a reader is let in: nothing is left of it.
func TestCancelledWhileAReaderIsLetIn(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for d := range 12 {
			run(t, func(e *env) {
				a := e.own()
				w := e.write(a)
				e.Delay(time.Millisecond)
				if lost {
					e.LoseReply(zktest.OpMulti, 1)
				}
				r := e.StartContext(w.Context(e.T.Context()), a.RLock)
				time.Sleep(time.Duration(d) * time.Millisecond / 2)
				r.Cancel()
				g, err := r.Result()
				if err == nil {
					e.Release(g)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				e.Queued(1)
				if w.Err() != nil {
					t.Error(w.Err())
				}
				e.Release(w)
				e.Empty()
			})
		}
	}
}
