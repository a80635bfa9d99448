package session

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath reports whether ZooKeeper would take path as the name of a node
// other than the root: absolute, no empty, "." or ".." elements, no trailing
// slash, no control or private-use characters, valid UTF-8. The error says what
// is wrong and matches ErrInvalid.
func ValidatePath(path string) error {
	if why := flaw(path); why != "" {
		return fmt.Errorf("%w: path %q %s", ErrInvalid, path, why)
	}
	return nil
}

// flaw says what is wrong with a path; "" if nothing is.
func flaw(path string) string {
	switch {
	case path == "":
		return "is empty: want an absolute path such as /locks/orders"
	case path[0] != '/':
		return "does not start with /"
	case path == "/":
		return "is the root: want a node below it"
	case strings.HasSuffix(path, "/"):
		return "ends with /"
	case !utf8.ValidString(path):
		return "is not valid UTF-8"
	}
	for _, e := range strings.Split(path[1:], "/") {
		switch e {
		case "":
			return "has an empty element"
		case ".", "..":
			return "has a relative element"
		}
	}
	if strings.HasPrefix(path, "/zookeeper/") || path == "/zookeeper" {
		return "lies below /zookeeper, which belongs to the server"
	}
	for _, r := range path {
		if forbidden(r) {
			return fmt.Sprintf("has the character %U, which ZooKeeper does not allow", r)
		}
	}
	return ""
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

// parentOf returns the path of the node above.
func parentOf(path string) string {
	return cmp.Or(path[:strings.LastIndexByte(path, '/')], "/")
}

// join returns the path of a node below dir.
func join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
