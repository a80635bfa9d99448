//go:build !windows

package main

import "os"

// movesCursor reports whether a terminal understands escape sequences, as all do here.
func movesCursor(*os.File) bool { return true }
