//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing here: a command outlives a lockkeeper that was
// killed.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// keepAwake does nothing here: a command that was stopped stays so.
func (p *process) keepAwake() {}
