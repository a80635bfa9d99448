package main

// A terminal is always nil here: commands run in the background of theirs.
type terminal struct{}

func ownTerminal() *terminal  { return nil }
func (t *terminal) give(int)  {}
func (t *terminal) takeBack() {}
