// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	reportID   = regexp.MustCompile(`\bBR-\d{3}\b`)
	reportRow  = regexp.MustCompile(`(?m)^\| (BR-\d{3}) \| [^|]+ \| ([^|]+) \|$`)
	reportTest = regexp.MustCompile("([a-z/-]+): `(Test\\w+)`")
)

// docs/cases-later.md and the tests name each other rightly.
func TestThePageOfPublicReportsAgreesWithTheTests(t *testing.T) {
	sources, named := testFiles(t)
	rows := map[string]string{}
	for _, m := range reportRow.FindAllStringSubmatch(readDoc(t, "docs/cases-later.md"), -1) {
		if rows[m[1]] != "" {
			t.Errorf("%s stands twice", m[1])
		}
		rows[m[1]] = m[2]
	}
	for id, text := range rows {
		tests := reportTest.FindAllStringSubmatch(text, -1)
		if len(tests) == 0 && named[id] != "" {
			t.Errorf("%s is said to come later, and %s names it", id, named[id])
		}
		for _, m := range tests {
			if !slices.ContainsFunc([]string{m[1], "internal/" + m[1]}, func(dir string) bool {
				return strings.Contains(sources[dir], "\nfunc "+m[2]+"(")
			}) {
				t.Errorf("%s: package %s has no %s", id, m[1], m[2])
			}
		}
	}
	for id, file := range named {
		if rows[id] == "" {
			t.Errorf("%s of %s is not on the page", id, file)
		}
	}
	if len(rows) < 100 || len(named) < 50 {
		t.Errorf("only %d reports on the page and %d in the tests", len(rows), len(named))
	}
}

// testFiles reads every test: the text of each folder's, and a file for each id
// of a report that one names.
func testFiles(t *testing.T) (sources, named map[string]string) {
	t.Helper()
	sources, named = map[string]string{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name != ".." && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && filepath.Ext(path) != ".txtar" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		dir := filepath.ToSlash(filepath.Dir(rel))
		sources[dir] += string(text)
		for _, id := range reportID.FindAllString(string(text), -1) {
			named[id] = rel
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources, named
}
