package truth

import (
	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Few clients and few paths, so that they meet.
var (
	whos  = rapid.SampledFrom([]string{"a", "b", "c"})
	paths = rapid.SampledFrom([]string{
		"~", "~/a", "~/a", "~/a", "~/b", "~/b", "~/a/x", "~/a/x", "~/a/y", "~/a/x/deep", "~/b/z",
		"~/a/0000000000", "~/a/0000000001", "~/a/0000000002", "~/s-0000000000", "~/s-0000000002", "~/b/s-0000000001",
		"~/", "~//a", "~/a/./b", "~/\x00", "x",
	})
	prefixes = rapid.SampledFrom([]string{"~/a/", "~/s-", "~/b/s-", "~/a/x/", "~/"})
	flags    = rapid.Bool()
	versions = rapid.SampledFrom([]int32{-1, -1, -1, 0, 0, 1, 2})
	contents = rapid.SampledFrom([][]byte{nil, {}, []byte("x"), []byte("data")})
	acls     = rapid.SampledFrom([][]jute.ACL{
		world, world, world, world, world,
		acl(31, "auth", ""), acl(1, "world", "anyone"), acl(6, "world", "anyone"),
		{jute.Entry(1, "world", "anyone"), jute.Entry(31, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")},
		acl(31, "ip", clientIP), acl(31, "ip", "10.0.0.0/8"), {},
	})
)

// field draws a field.
func field[T any](t *rapid.T, g *rapid.Generator[T]) T { return g.Draw(t, "field") }

// drawCreate draws a creation with its operation first. A time to live comes only
// with a mode that has one: a real 3.8.0 does not survive the contrary.
func drawCreate(t *rapid.T) []any {
	mode := field(t, rapid.SampledFrom([]int{persistent, persistent, ephemeral, ephemeral, sequential, ephemeralSequential, container, ttl, sequentialTTL}))
	path := field(t, paths)
	if mode == sequential || mode == ephemeralSequential || mode == sequentialTTL {
		path = field(t, prefixes)
	}
	op := field(t, rapid.SampledFrom([]zktest.Op{zktest.OpCreate, zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer}))
	r := []any{op, path, field(t, contents), field(t, acls), mode}
	if mode == ttl || mode == sequentialTTL {
		r[0] = zktest.OpCreateTTL
		r = append(r, field(t, rapid.SampledFrom([]int64{3_600_000, 7_200_000, 0, -1})))
	}
	return r
}

func drawDelete(t *rapid.T) []any {
	return []any{zktest.OpDelete, field(t, paths), field(t, versions)}
}

func drawSet(t *rapid.T) []any {
	return []any{zktest.OpSetData, field(t, paths), field(t, contents), field(t, versions)}
}

func drawCheck(t *rapid.T) []any { return []any{zktest.OpCheck, field(t, paths), field(t, versions)} }

func drawRead(t *rapid.T) []any {
	op := field(t, rapid.SampledFrom([]zktest.Op{zktest.OpExists, zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2}))
	return []any{op, field(t, paths), field(t, flags)}
}

func drawPart(t *rapid.T) []any {
	return field(t, rapid.OneOf(rapid.Custom(drawCreate), rapid.Custom(drawCreate),
		rapid.Custom(drawDelete), rapid.Custom(drawSet), rapid.Custom(drawCheck)))
}

func drawMulti(t *rapid.T) []any {
	return multi("", rapid.SliceOfN(rapid.Custom(drawPart), 0, 4).Draw(t, "parts")...)[1:]
}

func drawMultiRead(t *rapid.T) []any {
	reads := rapid.Custom(func(t *rapid.T) []any {
		op := field(t, rapid.SampledFrom([]zktest.Op{zktest.OpGetData, zktest.OpGetChildren}))
		return []any{op, field(t, paths), field(t, flags)}
	})
	return multiRead("", rapid.SliceOfN(reads, 0, 3).Draw(t, "reads")...)[1:]
}

func drawAccess(t *rapid.T) []any {
	switch field(t, rapid.IntRange(0, 3)) {
	case 0:
		return []any{zktest.OpAuth, 0, "digest", field(t, rapid.SampledFrom([][]byte{[]byte("u:p"), []byte("v:q")}))}
	case 1:
		return []any{zktest.OpSetACL, field(t, paths), field(t, acls), field(t, versions)}
	case 2:
		return []any{zktest.OpWhoAmI}
	}
	return []any{zktest.OpGetACL, field(t, paths)}
}

func drawWatch(t *rapid.T) []any {
	some := rapid.SliceOfN(paths, 0, 2)
	switch field(t, rapid.IntRange(0, 6)) {
	case 0:
		return []any{zktest.OpRemoveWatches, field(t, paths), field(t, rapid.IntRange(1, 3))}
	case 1:
		return []any{zktest.OpCheckWatches, field(t, paths), field(t, rapid.IntRange(1, 3))}
	case 2:
		return []any{zktest.OpSetWatches, since(field(t, rapid.IntRange(0, 30))), field(t, some), field(t, some), field(t, some)}
	case 3:
		return []any{zktest.OpSetWatches2, since(field(t, rapid.IntRange(0, 30))),
			field(t, some), field(t, some), field(t, some), field(t, some), field(t, some)}
	}
	return []any{zktest.OpAddWatch, field(t, paths), field(t, rapid.IntRange(0, 1))}
}

func drawQuery(t *rapid.T) []any {
	op := field(t, rapid.SampledFrom([]zktest.Op{zktest.OpSync, zktest.OpGetEphemerals, zktest.OpGetAllChildrenNumber}))
	return []any{op, field(t, paths)}
}

func drawAtOnce(t *rapid.T) []any {
	requests := rapid.SliceOfN(rapid.OneOf(rapid.Custom(drawCreate), rapid.Custom(drawCreate), rapid.Custom(drawDelete),
		rapid.Custom(drawSet), rapid.Custom(drawRead), rapid.Custom(drawMulti)), 2, 6).Draw(t, "requests")
	s := []any{atOnce}
	for _, r := range requests {
		s = append(s, r)
	}
	return s
}

func drawSession(t *rapid.T) []any {
	return []any{field(t, rapid.SampledFrom([]any{drop, resume, resume, open, open, zktest.OpCloseSession}))}
}

// drawStep draws what one client does.
func drawStep(t *rapid.T) step {
	draw := func(f func(*rapid.T) []any, times int) []*rapid.Generator[[]any] {
		list := make([]*rapid.Generator[[]any], times)
		for i := range list {
			list[i] = rapid.Custom(f)
		}
		return list
	}
	var kinds []*rapid.Generator[[]any]
	for _, k := range []struct {
		f     func(*rapid.T) []any
		times int
	}{
		{drawCreate, 6}, {drawDelete, 3}, {drawSet, 2}, {drawRead, 5}, {drawMulti, 2}, {drawMultiRead, 1},
		{drawAccess, 1}, {drawAtOnce, 1}, {drawWatch, 3}, {drawQuery, 1}, {drawSession, 1},
	} {
		kinds = append(kinds, draw(k.f, k.times)...)
	}
	return append(step{field(t, whos)}, field(t, rapid.OneOf(kinds...))...)
}
