package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// case 39: no arithmetic on the wall clock. A time.Time from time.Now keeps its
// monotonic reading, and with it Sub, Until and Add are safe from clock steps, as
// long as nothing is called that strips or ignores the reading.
func TestOnlyMonotonicTime(t *testing.T) {
	strips := map[string]bool{
		"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "Round": true, "Truncate": true,
		"UTC": true, "Local": true, "In": true, "AddDate": true, "Format": true, "Date": true, "Parse": true, "WithDeadline": true,
	}
	set := token.NewFileSet()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					seen++
					if strips[sel.Sel.Name] {
						t.Errorf("%v: %s", set.Position(call.Pos()), sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d calls were looked at", seen)
	}
}
