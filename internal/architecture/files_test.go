// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	rootDir = "../.."

	maxFileLines     = 500
	maxFunctionLines = 70 // of the body, as funlen counts

	license = "// SPDX-License-Identifier: Apache-2.0\n"
)

// emptyNames say nothing about what a package is for.
var emptyNames = []string{"base", "common", "helper", "helpers", "misc", "models", "shared", "types", "util", "utils"}

// source is one Go file of the repository.
type source struct {
	path      string // below the root, with slashes
	text      []byte
	positions *token.FileSet
	file      *ast.File
}

func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool { return ast.IsGenerated(s.file) }
func (s source) line(p token.Pos) int {
	return s.positions.Position(p).Line
}

func TestEveryFileNamesTheLicense(t *testing.T) {
	for _, s := range sources(t) {
		if !bytes.HasPrefix(s.text, []byte(license)) && !s.generated() {
			t.Errorf("%s does not begin with %q", s.path, strings.TrimSpace(license))
		}
	}
}

func TestFilesStayReadable(t *testing.T) {
	for _, s := range sources(t) {
		if lines := bytes.Count(s.text, []byte("\n")); lines > maxFileLines && !s.generated() {
			t.Errorf("%s has %d lines, more than %d: split it by subject", s.path, lines, maxFileLines)
		}
	}
}

func TestFunctionsFitAScreen(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.generated() {
			continue
		}
		for _, declaration := range s.file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			lines := s.line(function.End()) - s.line(function.Pos()) - 1
			if lines > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, more than %d", s.path, s.line(function.Pos()), function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

func TestTestsNeverSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() && !strings.Contains(s.path, "/storetest/") {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "Sleep" {
				return true
			}
			if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" {
				t.Errorf("%s:%d: time.Sleep: wait for the event, or move a manual clock", s.path, s.line(selector.Pos()))
			}
			return true
		})
	}
}

func TestPackageNamesSayWhatTheyAreFor(t *testing.T) {
	for _, s := range sources(t) {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if slices.Contains(emptyNames, name) {
			t.Errorf("%s: package %s: name it after what it is for", s.path, name)
		}
	}
}

// sources parses every Go file of the repository, those of nested modules too.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(rootDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != rootDir && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(rootDir, path)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(below), text, positions, file})
		return nil
	})
	if err != nil {
		t.Fatalf("read the sources: %v", err)
	}
	if len(all) == 0 {
		t.Fatal("no Go file found")
	}
	return all
}
