package fair

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Flow makes the contenders of a lock a part of the flow with that name, which gets
// shares of the lock in proportion to its weight. The name is 1 to 128 bytes of UTF-8
// without control characters, the weight 1 to 1,000,000. The option can be given
// once; without it, contenders have no flow.
func Flow(name string, weight int) recipes.Option {
	return recipes.Extension(flow{name, weight})
}

// ByHoldTime has flows share the time for which the lock is held, rather than the
// number of grants: see the package's documentation. It goes with Flow.
func ByHoldTime() recipes.Option { return recipes.Extension(byHoldTime{}) }

type flow struct {
	Name   string
	Weight int
}

type byHoldTime struct{}

// params are the options of this package.
type params struct {
	flow
	flows    bool // there is a flow
	holdTime bool
}

// MaxWeight is the largest weight of a flow.
const MaxWeight = 1_000_000

const maxName = 128

// known takes in an option.
func (p *params) known(v any) error {
	switch v := v.(type) {
	case flow:
		if p.flows {
			return fmt.Errorf("%w: Flow is given twice, as %q and %q: want one", recipes.ErrInvalid, p.Name, v.Name)
		}
		if err := v.check(); err != nil {
			return err
		}
		p.flow, p.flows = v, true
	case byHoldTime:
		p.holdTime = true
	default:
		return fmt.Errorf("%w: option %T is not for a fair lock", recipes.ErrInvalid, v)
	}
	return nil
}

func (p *params) check() error {
	if p.holdTime && !p.flows {
		return fmt.Errorf("%w: ByHoldTime without Flow: it shares the lock between flows", recipes.ErrInvalid)
	}
	return nil
}

// ValidateFlow returns an error that matches recipes.ErrInvalid if name and weight are
// not what Flow wants. It is for programs that check their input before they connect.
func ValidateFlow(name string, weight int) error { return flow{name, weight}.check() }

func (f flow) check() error {
	switch {
	case f.Name == "" || len(f.Name) > maxName || !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, isControl):
		return fmt.Errorf("%w: Flow(%q, …): want a name of 1 to %d bytes of UTF-8 without control characters", recipes.ErrInvalid, f.Name, maxName)
	case f.Weight < 1 || f.Weight > MaxWeight:
		return fmt.Errorf("%w: Flow(%q, %d): want a weight of 1 to %d", recipes.ErrInvalid, f.Name, f.Weight, MaxWeight)
	}
	return nil
}

// isControl is true for what is no part of a text that people read: C0, DEL, C1, and
// the separators of lines and paragraphs.
func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}

// nodeName returns what a flow's node is called: its name with every character
// escaped that a path can't have.
func nodeName(flow string) string {
	switch flow {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(flow)
}

// flowName is the other way round; ok is false for a node that is no flow's.
func flowName(node string) (name string, ok bool) {
	name, err := url.PathUnescape(node)
	return name, err == nil && nodeName(name) == node
}
