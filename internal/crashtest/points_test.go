package crashtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// top is the project's top directory, seen from this package.
const top = "../.."

// crashPoints reads the names of all points from the source, so that none can be forgotten here. A name stands at one
// place: else the one could be reached and the other never.
func crashPoints() ([]string, error) {
	at := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "conformance" || d.Name() == "crashtest" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return pointsIn(path, at)
	})
	if err == nil && len(at) == 0 {
		err = fmt.Errorf("no crash point below %s", top)
	}
	var names []string
	for n := range at {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, err
}

func pointsIn(path string, at map[string]string) (err error) {
	set := token.NewFileSet()
	file, perr := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if perr != nil {
		return perr
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "At" && f.Sel.Name != "Soon" {
			return true
		}
		if p, ok := f.X.(*ast.Ident); !ok || p.Name != "crash" {
			return true
		}
		here := set.Position(call.Pos()).String()
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			err = fmt.Errorf("%s: the name of a crash point has to be a literal", here)
			return false
		}
		name, _ := strconv.Unquote(lit.Value)
		if other := at[name]; other != "" {
			err = fmt.Errorf("%s: crash point %s is at %s, too", here, name, other)
		}
		at[name] = here
		return true
	})
	return err
}
