package zktest

import "fmt"

// Code is an error number of the ZooKeeper protocol; 0 is success. The direct
// edits of a Server return it, wrapped: use errors.Is.
type Code int32

// The codes that this server answers with. FailRequest can send any other.
const (
	codeOK Code = 0

	RuntimeInconsistency    Code = -2
	ConnectionLoss          Code = -4
	MarshallingError        Code = -5
	Unimplemented           Code = -6
	OperationTimeout        Code = -7
	BadArguments            Code = -8
	NoNode                  Code = -101
	NoAuth                  Code = -102
	BadVersion              Code = -103
	NoChildrenForEphemerals Code = -108
	NodeExists              Code = -110
	NotEmpty                Code = -111
	SessionExpired          Code = -112
	InvalidACL              Code = -114
	AuthFailed              Code = -115
	SessionMoved            Code = -118
	NoWatcher               Code = -121
	ReconfigDisabled        Code = -123
)

var codeNames = map[Code]string{
	codeOK:                  "ok",
	RuntimeInconsistency:    "runtime inconsistency",
	ConnectionLoss:          "connection loss",
	MarshallingError:        "marshalling error",
	Unimplemented:           "unimplemented",
	OperationTimeout:        "operation timeout",
	BadArguments:            "bad arguments",
	NoNode:                  "no node",
	NoAuth:                  "not authorized",
	BadVersion:              "bad version",
	NoChildrenForEphemerals: "ephemerals have no children",
	NodeExists:              "node exists",
	NotEmpty:                "node has children",
	SessionExpired:          "session expired",
	InvalidACL:              "invalid ACL",
	AuthFailed:              "authentication failed",
	SessionMoved:            "session moved",
	NoWatcher:               "no such watch",
	ReconfigDisabled:        "reconfiguration is disabled",
}

// Error names the code and gives its number.
func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return fmt.Sprintf("%s (%d)", name, int32(c))
	}
	return fmt.Sprintf("code %d", int32(c))
}
