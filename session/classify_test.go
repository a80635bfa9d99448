package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// case 85: every code that a server can answer with has a class.
func TestClassOfEveryCode(t *testing.T) {
	mapped := map[int]error{
		-8: zk.ErrBadArguments, -100: zk.ErrAPIError, -101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion,
		-108: zk.ErrNoChildrenForEphemerals, -110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired,
		-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -116: zk.ErrClosing, -117: zk.ErrNothing, -118: zk.ErrSessionMoved,
		-123: zk.ErrReconfigDisabled,
	}
	want := map[int]outcome{
		-1:   unknown,  // system error
		-2:   unknown,  // runtime inconsistency
		-3:   unknown,  // data inconsistency
		-4:   unknown,  // connection loss
		-5:   answered, // marshalling error
		-6:   answered, // unimplemented
		-7:   unknown,  // operation timeout
		-8:   answered, // bad arguments
		-9:   answered, // invalid state
		-100: answered, -101: answered, -102: answered, -103: answered, -108: answered, -110: answered, -111: answered,
		-112: sessionOver,
		-113: answered, -114: answered, -115: answered,
		-116: unknown, // closing: the client's own
		-117: answered,
		-118: notSent,  // session moved: refused, to be sent over the new connection
		-119: answered, // not read-only
		-120: answered, // no ephemerals in a local session
		-121: answered, // no watcher
		-122: unknown,  // request timeout
		-123: answered, // no reconfiguration
		-124: answered, // SASL wanted
		-125: answered, // quota exceeded
		-127: notSent,  // throttled
		-999: answered,
	}
	for code, class := range want {
		err := mapped[code]
		if err == nil {
			err = fmt.Errorf("unknown error: %d", code) // the client's words
		}
		if got := classify(err); got != class {
			t.Errorf("code %d (%v): class %d, want %d", code, err, got, class)
		}
		if got := classify(fmt.Errorf("wrapped: %w", err)); mapped[code] != nil && got != class {
			t.Errorf("code %d, wrapped: class %d, want %d", code, got, class)
		}
	}
}

// case 84: what is no answer of the server leaves the outcome unknown.
func TestClassOfEveryOtherError(t *testing.T) {
	for _, err := range []error{
		zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrUnknown,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded,
		&net.OpError{Op: "write", Err: errors.New("broken pipe")}, errors.New("anything"),
		errors.New("unknown error: many"), errors.New("unknown error: "),
	} {
		if got := classify(err); got != unknown {
			t.Errorf("%v: class %d", err, got)
		}
	}
	if classify(nil) != carriedOut || classify(zk.ErrNoServer) != notSent {
		t.Error("success, or what was never sent")
	}
	for _, err := range []error{zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrShortBuffer} {
		if got := classify(err); got != answered {
			t.Errorf("%v: class %d: refused by the client before anything was sent", err, got)
		}
	}
}

func TestErrorSaysWhyAndWhatWentWrongLast(t *testing.T) {
	err := error(&Error{Op: "create", Path: "/a", Reason: zk.ErrNoNode, LastErr: io.EOF})
	if !errors.Is(err, zk.ErrNoNode) || !errors.Is(err, io.EOF) {
		t.Error("does not unwrap")
	}
	if s := err.Error(); s != "session: create /a: zk: node does not exist (last: EOF)" {
		t.Error(s)
	}
	err = &Error{Op: "create", Path: "/a", Reason: zk.ErrNoNode}
	if !errors.Is(err, zk.ErrNoNode) || errors.Is(err, io.EOF) || strings.Contains(err.Error(), "last") {
		t.Error(err)
	}
	if a := fmt.Sprintf("%v %s", Auth{"digest", "user:secret"}, Auth{"digest", "user:secret"}); strings.Contains(a, "secret") {
		t.Error(a)
	}
	for s, word := range map[State]string{Connected: "connected", Suspended: "suspended", Lost: "lost", Closed: "closed", 0: "none"} {
		if s.String() != word {
			t.Errorf("%d: %s", s, s)
		}
	}
}
