// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"archive/zip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/window"
)

const (
	second = int64(1_000_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// fataler is what *testing.T, *testing.F and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func zone(t fataler, name string) *time.Location {
	t.Helper()
	loc, err := window.Zone(name)
	if err != nil {
		t.Fatalf("Zone(%q): %v", name, err)
	}
	return loc
}

// micros reads an RFC 3339 instant.
func micros(t fataler, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return at.UnixMicro()
}

func text(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339Nano) }

func date(t fataler, text string) window.Day {
	t.Helper()
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return window.DayOf(at.Date())
}

// clockDate is the date that a clock on the wall shows, by package time alone.
func clockDate(at int64, loc *time.Location) window.Day {
	return window.DayOf(time.UnixMicro(at).In(loc).Date())
}

// zoneNames lists the embedded database.
func zoneNames(t testing.TB) []string {
	t.Helper()
	archive, err := zip.OpenReader("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	if len(names) < 400 {
		t.Fatalf("only %d zones", len(names))
	}
	return names
}
