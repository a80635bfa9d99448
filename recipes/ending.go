package recipes

import "sync"

// An ending happens once, with an error, and tells those who asked.
type ending struct {
	done chan struct{}

	mu    sync.Mutex
	err   error
	hooks map[*func(error)]struct{}
}

func newEnding() ending { return ending{done: make(chan struct{})} }

func (e *ending) result() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// finish ends it and reports whether this call did. When it returns, done is
// closed and the hooks have run.
func (e *ending) finish(err error) bool {
	e.mu.Lock()
	if e.err != nil {
		e.mu.Unlock()
		return false
	}
	e.err = err
	hooks := e.hooks
	e.hooks = nil
	close(e.done)
	e.mu.Unlock()
	for h := range hooks {
		(*h)(err)
	}
	return true
}

// onEnd has fn called when it ends, at once if it has ended. fn must not block.
// forget takes that back.
func (e *ending) onEnd(fn func(error)) (forget func()) {
	e.mu.Lock()
	if e.err != nil {
		err := e.err
		e.mu.Unlock()
		fn(err)
		return func() {}
	}
	h := &fn
	if e.hooks == nil {
		e.hooks = make(map[*func(error)]struct{})
	}
	e.hooks[h] = struct{}{}
	e.mu.Unlock()
	return func() {
		e.mu.Lock()
		delete(e.hooks, h)
		e.mu.Unlock()
	}
}
