// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/window"
)

func TestEveryZoneOfTheDatabaseLoadsOnce(t *testing.T) {
	for _, name := range zoneNames(t) {
		if loc := zone(t, name); loc != zone(t, name) || loc.String() != name {
			t.Errorf("%s is %s", name, loc)
		}
	}
}

func TestNoNameIsUTC(t *testing.T) {
	for _, name := range []string{"", "UTC"} {
		if zone(t, name) != time.UTC {
			t.Errorf("%q is not UTC", name)
		}
	}
}

func TestNamesThatAreNotInTheDatabaseAreRefused(t *testing.T) {
	for _, name := range []string{
		"Local", "local", "utc", "europe/berlin", "Europe/berlin", "Mars/Base", "Europe", "Europe/", "/", ".", "..", " UTC",
		"../Europe/Berlin", "Europe/../Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin", "/etc/localtime", `Europe\Berlin`,
		":Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", "+02:00", "UTC+2", "Europe/Berlin\x00", strings.Repeat("A/", 1<<16),
	} {
		loc, err := window.Zone(name)
		if loc != nil || !errors.Is(err, window.ErrUnknownZone) || len(err.Error()) > 400 {
			t.Errorf("Zone(%.40q) = %v, %.400v", name, loc, err)
		}
	}
}

// CAP-3: what the machine believes about its zones changes no window.
func TestTheSystemsDatabaseIsNotRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ZONEINFO", dir)
	t.Setenv("TZ", "Asia/Tokyo")
	if err := os.WriteFile(filepath.Join(dir, "Weir"), zoneFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := time.LoadLocationFromTZData("Weir", zoneFile()); err != nil {
		t.Fatalf("the planted zone is not one: %v", err)
	}
	if _, err := window.Zone("Weir"); !errors.Is(err, window.ErrUnknownZone) {
		t.Errorf("the planted zone was read: %v", err)
	}
}

// zoneFile is a minimal zone in the format of RFC 9636: nine hours east.
func zoneFile() []byte {
	header := "TZif2" + strings.Repeat("\x00", 15)
	counts := strings.Repeat("\x00", 16) + "\x00\x00\x00\x01" + "\x00\x00\x00\x04"
	body := "\x00\x00\x7e\x90" + "\x00" + "\x00" + "JST\x00"
	return []byte(header + counts + body + header + counts + body + "\nJST-9\n")
}

func TestZonesLoadConcurrently(t *testing.T) {
	names := zoneNames(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, name := range names {
				loc, err := window.Zone(name)
				if err != nil || window.DayAt(0, loc) < -1 {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
}
