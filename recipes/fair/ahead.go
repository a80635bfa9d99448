package fair

import (
	"context"
	"iter"
)

// Ahead yields how many contenders are in front, holder included, at once and then at
// each change that this client notices anyway; the last is 0, when the turn has come.
// It adds no watch. A contender is told when the one just before it goes, so that is
// when there is news, and each 30 to 60 seconds it looks again; in between, the number
// may be smaller already. Before the gate of a flow it is the number of those ahead in
// the flow and of all in the lock's queue; there others can come in between, so it
// may also grow, and what is left at the gate's opening is what counts.
//
// A number costs one listing of the queue, or one and a read, and nobody pays it who
// doesn't ask: it is counted when the reader asks for the next element, and a slow
// reader skips to the latest. If the place is lost or left, that is the last element,
// an error as of Wait. It ends when ctx ends, without an element for that. Each range
// over it begins anew.
func (t *Ticket) Ahead(ctx context.Context) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		last := -1
		for {
			t.mu.Lock()
			news := t.news
			t.mu.Unlock()
			n, err := t.ahead(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(0, t.l.fail("ahead", err))
				return
			}
			if n != last && !yield(n, nil) || n == 0 {
				return
			}
			last = n
			select {
			case <-news:
			case <-t.turn:
			case <-ctx.Done():
				return
			}
		}
	}
}

// ahead counts. A count that fails because the place was lost or left does so for that
// reason.
func (t *Ticket) ahead(ctx context.Context) (int, error) {
	if done, err := t.came(); done {
		return 0, err
	}
	n, err := t.count(ctx)
	if err != nil || n == 0 { // then it is about to come
		select {
		case <-t.turn:
		case <-ctx.Done():
			return 0, err
		}
		_, err = t.came()
		return 0, err
	}
	return n, nil
}

// came reports whether the turn has come, or why it never will.
func (t *Ticket) came() (bool, error) {
	select {
	case <-t.turn:
	default:
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && t.spent && t.held == nil {
		return true, ErrSpent
	}
	return true, t.err
}

func (t *Ticket) count(ctx context.Context) (int, error) {
	t.mu.Lock()
	at, main := t.at, t.main
	t.mu.Unlock()
	if main != nil {
		return main.Waiting(ctx)
	}
	n, err := at.Waiting(ctx)
	if err != nil {
		return 0, err
	}
	more, err := t.l.main.Len(ctx, t.life)
	return n + more, err
}
