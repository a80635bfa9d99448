package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// movesCursor has the console understand escape sequences, if it can.
func movesCursor(f *os.File) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
