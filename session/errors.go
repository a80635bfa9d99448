package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Why a life ended, from [Life.Err]; each but ErrClosed is followed by a new life.
var (
	ErrExpired     = errors.New("session expired by the ensemble")
	ErrTrustOver   = errors.New("trust window over: nothing was committed for too long")
	ErrUnreachable = errors.New("no contact with the ensemble for a whole session timeout")
	ErrReplaced    = errors.New("ensemble answered with another session")
	ErrAuthFailed  = errors.New("ensemble refused our credentials")
	ErrClosed      = errors.New("session closed")
)

var (
	// ErrInvalid: an argument can't be right. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")
	// ErrSuspended is what a hold is lost to under Config.RevokeOnSuspend.
	ErrSuspended = errors.New("connection suspended")
	// ErrNodeGone is what a hold is lost to when its node was removed, or is not
	// this session's any more.
	ErrNodeGone = errors.New("node removed on the server")
	// ErrOutcomeUnknown: the request was sent, and whether it was carried out is
	// not known.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// An Error is what a request to the ensemble came to.
type Error struct {
	Op, Path string
	// Reason is a ZooKeeper error code (zk.ErrNoNode, …), the life's end
	// ([Life.Err]), ErrOutcomeUnknown, or context.Cause of the caller's context.
	Reason  error
	LastErr error // what last went wrong on the way; may be nil
}

// Error returns "op path: reason (last: …)".
func (e *Error) Error() string {
	s := "session: " + e.Op + " " + e.Path + ": " + e.Reason.Error()
	if e.LastErr != nil {
		s += " (last: " + e.LastErr.Error() + ")"
	}
	return s
}

// Unwrap returns the reason and the last error.
func (e *Error) Unwrap() []error {
	if e.LastErr == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.LastErr}
}

// outcome says what an error of the client tells about a request.
type outcome int

const (
	carriedOut  outcome = iota // no error
	answered                   // refused by the server with a code: final
	notSent                    // certainly not carried out: may be sent again
	unknown                    // may have been carried out
	sessionOver                // the server knows the session no more: not carried out
)

// classify holds to one rule: what is not an answer of the server leaves the
// outcome unknown.
func classify(err error) outcome {
	switch {
	case err == nil:
		return carriedOut
	case errors.Is(err, zk.ErrSessionExpired):
		return sessionOver
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrSessionMoved):
		return notSent
	case isCode(err):
		return answered
	}
	switch code, ok := unmappedCode(err); {
	case !ok:
		return unknown
	case code == codeThrottled:
		return notSent
	case code == codeConnectionLoss || code == codeOperationTimeout || code == codeRequestTimeout || code >= codeDataInconsistency:
		return unknown
	default:
		return answered
	}
}

var codes = []error{
	zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals,
	zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrNothing,
	zk.ErrReconfigDisabled, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrShortBuffer,
}

func isCode(err error) bool {
	for _, c := range codes {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// Codes that are looked at as numbers; most have no error in the client.
const (
	codeDataInconsistency = -3
	codeConnectionLoss    = -4
	codeUnimplemented     = -6
	codeOperationTimeout  = -7
	codeNoNode            = -101
	codeRequestTimeout    = -122
	codeThrottled         = -127
)

// unmappedCode parses the client's error for a code that it has no name for.
func unmappedCode(err error) (int, bool) {
	s, ok := strings.CutPrefix(err.Error(), "unknown error: ")
	if !ok {
		return 0, false
	}
	code, err := strconv.Atoi(s)
	return code, err == nil
}

func isUnimplemented(err error) bool {
	code, ok := unmappedCode(err)
	return ok && code == codeUnimplemented
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("session: %w: "+format, append([]any{ErrInvalid}, args...)...)
}
