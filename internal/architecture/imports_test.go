// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list -json` tells of one package. Imports leaves out those of
// test files, which may import what they test against.
type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
}

// path is the package's folder below the module's root, "" for the root.
func (p pkg) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func TestEveryPackageHasAPlaceInTheLayout(t *testing.T) {
	for _, p := range packages(t) {
		if family, ok := familyOf(p.path()); ok {
			if position(family) < 0 {
				t.Errorf("%s has no place in the layout: add %q to the table in internal/architecture/layout_test.go and to docs/architecture.md",
					p.path(), family)
			}
			continue
		}
		if p.path() != "cmd/weir" && !strings.HasPrefix(p.path(), "clients/") {
			t.Errorf("%s stands outside internal/, cmd/weir and clients/: move it, or name it in internal/architecture/imports_test.go and docs/architecture.md",
				p.path())
		}
	}
}

func TestImportsPointInOneDirection(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			target, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			if reason := forbidden(p.path(), target); reason != "" {
				t.Errorf("%s imports %s: %s", p.path(), target, reason)
			}
		}
	}
}

func TestTheDirectionsRefuseWhatTheyShould(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"internal/money", "internal/fault", false},
		{"internal/call", "internal/money", true},
		{"internal/price", "internal/call", true},
		{"internal/call", "internal/price", false},
		{"internal/limit/internal/family", "internal/price", true},
		{"internal/price/internal/generate", "internal/price", true},
		{"internal/admit", "internal/directory", false},
		{"internal/directory", "internal/admit", true},
		{"internal/teller", "internal/store", false},
		{"internal/gateway", "internal/admit", true},
		{"internal/gateway", "internal/store", false},
		{"internal/gateway", "internal/wire/openai", false},
		{"internal/wire/openai", "internal/wire", true},
		{"internal/wire/openai", "internal/wire/anthropic", false},
		{"internal/store/sqlite", "internal/store", true},
		{"internal/store/sqlite", "internal/store/sqlite/internal/query", true},
		{"internal/store/sqlite", "internal/store/postgres", false},
		{"internal/config", "internal/tenant", true},
		{"internal/config", "internal/store", false},
		{"internal/cli", "internal/app", true},
		{"internal/cli", "internal/store/sqlite", false},
		{"internal/app", "internal/store/sqlite", true},
		{"internal/admin", "internal/app", false},
		{"cmd/weir", "internal/cli", true},
		{"cmd/weir", "internal/app", false},
	} {
		if reason := forbidden(c.from, c.to); (reason == "") != c.allowed {
			t.Errorf("%s imports %s: allowed should be %t, got reason %q", c.from, c.to, c.allowed, reason)
		}
	}
}

func TestModulesFromElsewhereStayInTheirHomes(t *testing.T) {
	for _, p := range packages(t) {
		family, ok := familyOf(p.path())
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			if !strings.Contains(strings.Split(imported, "/")[0], ".") || strings.HasPrefix(imported, module+"/") {
				continue
			}
			if reason := homeless(family, imported); reason != "" {
				t.Errorf("%s imports %s: %s (homes in internal/architecture/layout_test.go)", p.path(), imported, reason)
			}
		}
	}
}

func TestDecisionsKnowNoLockNoContextAndNoClock(t *testing.T) {
	all := packages(t)
	for _, p := range all {
		family, _ := familyOf(p.path())
		if !slices.Contains(pure, family) {
			continue
		}
		for _, imported := range p.Imports {
			if imported == "context" || within(imported, "sync") {
				t.Errorf("%s imports %s: a decision is a pure function", p.path(), imported)
			}
		}
		if chain := chainTo(all, p.ImportPath, module+"/internal/clock"); chain != nil {
			t.Errorf("%s reaches the clock: %s", p.path(), strings.Join(chain, " -> "))
		}
	}
}

// forbidden tells why the package at folder from may not import the one at
// folder to, and is empty when it may.
func forbidden(from, to string) string {
	family, inside := familyOf(from)
	target, known := familyOf(to)
	switch {
	case !known:
		return "only packages below internal/ are imported"
	case !inside && from == "cmd/weir" && target != "cli":
		return "the command has no logic: it imports internal/cli"
	case !inside || position(family) < 0 || position(target) < 0:
		return "" // TestEveryPackageHasAPlaceInTheLayout says it
	case family == target:
		if within(to, from) || within(from, to) || layerOf(family) <= domain || slices.Contains(common, to) {
			return ""
		}
		return "siblings share through the folder above them, never directly"
	case layerOf(family) == root || slices.Contains(also[family], target):
		return ""
	case layerOf(family) == leaf:
		return "leaves import only the standard library"
	case layerOf(target) == leaf:
		return ""
	case layerOf(family) == domain && layerOf(target) == domain && position(target) < position(family):
		return ""
	case layerOf(family) == domain:
		return "a domain package imports leaves and the domain packages listed before it"
	case layerOf(target) == domain:
		return ""
	case layerOf(family) == adapter:
		return "adapters import domain and leaves, never each other: declare a small interface, internal/app joins them"
	default:
		return "only internal/app imports everything"
	}
}

// homeless tells why a family may not import a package from elsewhere, and is
// empty when it may.
func homeless(family, imported string) string {
	for home, allowed := range homes {
		if !within(imported, home) {
			continue
		}
		if slices.Contains(allowed, family) {
			return ""
		}
		return fmt.Sprintf("of ours only %v may, outside tests", allowed)
	}
	switch {
	case position(family) < 0 || layerOf(family) > domain:
		return ""
	case layerOf(family) == leaf:
		return "leaves import only the standard library"
	default:
		return "a domain package imports no module that does not name it as its home"
	}
}

// chainTo returns the imports that lead from one package of ours to another,
// both named, or nil.
func chainTo(all []pkg, from, to string) []string {
	if from == to {
		return []string{to}
	}
	for _, p := range all {
		if p.ImportPath != from {
			continue
		}
		for _, next := range p.Imports {
			if !strings.HasPrefix(next, module+"/") {
				continue
			}
			if chain := chainTo(all, next, to); chain != nil {
				return append([]string{from}, chain...)
			}
		}
	}
	return nil
}

// familyOf returns the folder below internal/ that path is or lies in.
func familyOf(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "internal/")
	family, _, _ := strings.Cut(rest, "/")
	return family, ok
}

// position is a family's line in the layout, -1 when it has none.
func position(family string) int {
	for i, f := range families {
		if f.name == family {
			return i
		}
	}
	return -1
}

func layerOf(family string) layer { return families[position(family)].layer }

// within reports whether path is folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// packages lists the module's packages; those of nested modules are not its.
// Packages that do not compile are listed too (-e): the compiler reports them.
func packages(t *testing.T) []pkg {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Imports", module+"/...")
	list.Dir = rootDir
	out, err := list.Output()
	if err != nil {
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			t.Fatalf("go list: %v\n%s", err, failed.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list named no package")
	}
	return all
}
