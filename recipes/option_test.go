package recipes_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]recipes.Option{
		"nil":                      nil,
		"no owner":                 recipes.Owner(""),
		"long owner":               recipes.Owner(strings.Repeat("x", 257)),
		"owner no text":            recipes.Owner("\xff"),
		"owner with line feed":     recipes.Owner("a\nb"),
		"owner with NUL":           recipes.Owner("a\x00"),
		"owner with DEL":           recipes.Owner("a\x7f"),
		"owner with C1":            recipes.Owner("a\u0085"),
		"no callback":              recipes.OnRevoke(nil),
		"no hold time":             recipes.MaxHold(0),
		"negative hold time":       recipes.MaxHold(-1),
		"no delay":                 recipes.LockDelay(0),
		"negative delay":           recipes.LockDelay(-time.Second),
		"delay too short":          recipes.LockDelay(time.Millisecond - 1),
		"delay too long":           recipes.LockDelay(24*time.Hour + 1),
		"delay much too long":      recipes.LockDelay(math.MaxInt64),
		"no logger":                recipes.Logger(nil),
		"another recipe's option":  recipes.Extension("x"),
		"another recipe's, of nil": recipes.Extension(nil),
	} {
		for _, opts := range [][]recipes.Option{{o}, {recipes.Reentrant(), o, recipes.FailOnLoss()}} {
			set, err := recipes.NewSettings(opts, nil)
			if !errors.Is(err, recipes.ErrInvalid) || set.Owner != "" {
				t.Errorf("%s: %+v, %v", name, set, err)
			}
		}
	}
}

func TestGoodOptions(t *testing.T) {
	set := settings(t)
	if set.Owner == "" || set.Logger == nil || set.MaxHold != 0 || set.LockDelay != 0 || set.Reentrant || set.FailOnLoss {
		t.Errorf("defaults: %+v", set)
	}
	l := slog.New(slog.DiscardHandler)
	set = settings(t, recipes.Owner(strings.Repeat("é", 128)), recipes.OnRevoke(func(recipes.Revocation) {}),
		recipes.OnRevoke(func(recipes.Revocation) {}), recipes.MaxHold(1), recipes.LockDelay(time.Millisecond+1),
		recipes.Reentrant(), recipes.FailOnLoss(), recipes.Logger(l))
	if len(set.Owner) != 256 || len(set.OnRevoke) != 2 || set.MaxHold != 1 || set.LockDelay != time.Millisecond ||
		!set.Reentrant || !set.FailOnLoss || set.Logger != l {
		t.Errorf("%+v", set)
	}
	settings(t, recipes.LockDelay(24*time.Hour), recipes.MaxHold(math.MaxInt64), recipes.Owner("a b/ü-☃"))
}

func TestExtensions(t *testing.T) {
	set, err := recipes.NewSettings([]recipes.Option{recipes.Extension(1), recipes.Extension(2)}, func(any) error { return nil })
	if err != nil || len(set.Extensions) != 2 || set.Extensions[0] != 1 || set.Extensions[1] != 2 {
		t.Errorf("%v, %v", set.Extensions, err)
	}
	unknown := errors.New("unknown")
	if _, err := recipes.NewSettings([]recipes.Option{recipes.Extension(1)}, func(any) error { return unknown }); !errors.Is(err, unknown) {
		t.Error(err)
	}
}

func TestErrorSaysWhatHappened(t *testing.T) {
	last := errors.New("connection refused")
	var err error = &recipes.Error{Op: "lock", Path: "/x", Reason: recipes.ErrPermission, LastErr: last}
	if err.Error() != "lockkeeper: lock /x: permission denied (last: connection refused)" {
		t.Error(err)
	}
	if !errors.Is(err, recipes.ErrPermission) || !errors.Is(err, last) || errors.Is(err, recipes.ErrBusy) {
		t.Error("it matches the wrong things")
	}
	err = &recipes.Error{Op: "trylock", Path: "/x", Reason: recipes.ErrBusy}
	if err.Error() != "lockkeeper: trylock /x: held by another" || !errors.Is(err, recipes.ErrBusy) {
		t.Error(err)
	}
	if recipes.Token(math.MaxUint64).String() != "18446744073709551615" {
		t.Error(recipes.Token(math.MaxUint64))
	}
}
