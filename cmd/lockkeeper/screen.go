package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/session"
)

// isScreen reports whether what was written to f can be overwritten.
func isScreen(f *os.File) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) && movesCursor(f)
}

// redraw shows who is in line, in one place on the screen, until ctx ends. Ages grow
// while nothing happens, which takes no request.
func redraw(ctx context.Context, sess *session.Session, o *inspect.Observer, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type change struct {
		q   inspect.Queue
		err error
		at  time.Time
	}
	changes := make(chan change)
	go func() { // ends with ctx
		defer close(changes)
		for q, err := range o.Watch(ctx, showEvery) {
			select {
			case changes <- change{q, err, time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var last change
	var p picture
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return context.Cause(ctx)
			}
			if c.err != nil {
				return c.err
			}
			last = c
		case <-second.C:
			if last.at.IsZero() {
				continue
			}
		}
		var lines []string
		if sess.State() == session.Connected {
			lines = table(last.q.At(last.q.Time.Add(time.Since(last.at))))
		} else {
			lines = table(last.q) // as it was
			lines[0] += " (no connection)"
		}
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			width, height = 0, 0
		}
		if err := p.draw(out, lines, width, height); err != nil {
			return err
		}
	}
}

// A picture is a number of lines above the cursor that are drawn anew.
type picture struct{ lines int }

// draw overwrites what was drawn before. Lines are cut to the width of the screen, and
// their number to its height, where those are known: what has scrolled or wrapped can't
// be overwritten.
func (p *picture) draw(w io.Writer, lines []string, width, height int) error {
	if height > 2 && len(lines) > height-1 { // the last line is the cursor's
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… and %d more", more))
	}
	var s []byte
	if p.lines > 0 {
		s = fmt.Appendf(s, "\x1b[%dA", p.lines) // up
	}
	for _, line := range lines {
		s = append(s, '\r')
		s = append(s, cut(line, width)...)
		s = append(s, "\x1b[K\n"...) // to the end of the line
	}
	s = append(s, "\x1b[J"...) // and of the screen
	p.lines = len(lines)
	_, err := w.Write(s)
	return err
}

// cut returns as much of a line as fits.
func cut(line string, width int) string {
	if width <= 0 {
		return line
	}
	used := 0
	for i, r := range line {
		used++
		if r >= 0x1100 { // may be a wide one
			used++
		}
		if used > width {
			return line[:i]
		}
	}
	return line
}
