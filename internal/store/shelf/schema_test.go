// SPDX-License-Identifier: Apache-2.0

package shelf_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

func files(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// TestMigrationsSayHowFarBackTheyReach: STO-3.
func TestMigrationsSayHowFarBackTheyReach(t *testing.T) {
	list, err := shelf.Migrations(files(map[string]string{
		"00001_book.sql": "-- a line\n-- Compatible since: 1\n\n-- +goose Up\n", "00002_wide.sql": "-- Compatible since: 1\n", "00003_moved.sql": "-- Compatible since: 3\n",
	}))
	want := []store.Migration{{Version: 1, Name: "book", CompatibleSince: 1}, {Version: 2, Name: "wide", CompatibleSince: 1}, {Version: 3, Name: "moved", CompatibleSince: 3}}
	if err != nil || len(list) != 3 || list[0] != want[0] || list[1] != want[1] || list[2] != want[2] {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
	for text, of := range map[string]map[string]string{
		"there are no migrations":  {},
		"begins with no number":    {"book.sql": "-- Compatible since: 1\n"},
		"its number is not 2":      {"1_a.sql": "-- Compatible since: 1\n", "3_b.sql": "-- Compatible since: 1\n"},
		"say no":                   {"1_a.sql": "SELECT 1;\n-- Compatible since: 1\n"},
		"from 1 to its own":        {"1_a.sql": "-- Compatible since: 2\n"},
		`"-- Compatible since: x"`: {"1_a.sql": "-- Compatible since: x\n"},
	} {
		if _, err := shelf.Migrations(files(of)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %q", of, err, text)
		}
	}
}

// TestAnOlderProgramAsksForTheLeastAndNotForTheSame: STO-3.
func TestAnOlderProgramAsksForTheLeastAndNotForTheSame(t *testing.T) {
	list := []store.Migration{{Version: 1, Name: "book", CompatibleSince: 1}, {Version: 2, Name: "wide", CompatibleSince: 1}, {Version: 3, Name: "moved", CompatibleSince: 3}}
	for _, c := range []struct {
		knows            int // of list
		have, compatible int64
		want             int64 // Compatible
		pending          int
		reach            int64
		fails            bool
	}{
		{3, 0, 0, 0, 3, 3, false},
		{3, 2, 1, 1, 1, 3, false},
		{3, 3, 0, 3, 0, 3, false}, // nothing says so: what the program knows of it
		{2, 3, 1, 1, 0, 1, false}, // newer, and this program may stay
		{2, 3, 3, 3, 0, 3, true},
		{2, 3, 0, 3, 0, 3, true}, // newer, and nobody says how far back it reaches
	} {
		s := shelf.Schema(list[:c.knows], c.have, c.compatible)
		if s.Compatible != c.want || len(s.Pending) != c.pending || shelf.Reach(&s) != c.reach || (s.Check() != nil) != c.fails {
			t.Errorf("%+v: %+v, reach %d, %v", c, s, shelf.Reach(&s), s.Check())
		}
	}
}
