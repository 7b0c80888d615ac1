// SPDX-License-Identifier: Apache-2.0

package window

import (
	"archive/zip"
	_ "embed" // for the time zone database
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The IANA time zone database (public domain) as Go ships it. It is embedded,
// and nothing else is read, so that every replica knows the same days however
// old its system's database is. To renew it, run go generate with a new
// toolchain.
//
//go:generate cp $GOROOT/lib/time/zoneinfo.zip zoneinfo.zip
//go:embed zoneinfo.zip
var zoneinfo string

// ErrUnknownZone is the error for a name that the database does not have.
var ErrUnknownZone = errors.New("is not in the time zone database")

// zones remembers what was read from the constant database, one entry a zone
// at most, and so is a table that is filled late rather than a state.
var zones struct {
	mu        sync.Mutex
	byName    sync.Map // string -> *time.Location
	calendars sync.Map // *time.Location -> *calendar
}

// Zone is the location of an IANA name such as "Europe/Berlin", compared
// exactly; "" and "UTC" are UTC. It always returns the same pointer for the
// same name. The system's database and TZ are never consulted: "Local", paths
// and whatever else is not in the embedded database are ErrUnknownZone.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := zones.byName.Load(name); ok {
		return loc.(*time.Location), nil
	}
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if loc, ok := zones.byName.Load(name); ok {
		return loc.(*time.Location), nil
	}
	loc, err := load(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %s %w", quote(name), err)
	}
	zones.calendars.Store(loc, survey(loc, tableFromMicros, tableToMicros))
	zones.byName.Store(name, loc)
	return loc, nil
}

// index finds a zone's file in the database by its name.
var index = sync.OnceValues(func() (map[string]*zip.File, error) {
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		return nil, fmt.Errorf("read the embedded time zone database: %w", err)
	}
	files := make(map[string]*zip.File, len(archive.File))
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			files[f.Name] = f
		}
	}
	return files, nil
})

func load(name string) (*time.Location, error) {
	files, err := index()
	if err != nil {
		return nil, err
	}
	file, ok := files[name]
	if !ok {
		return nil, ErrUnknownZone
	}
	r, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return time.LoadLocationFromTZData(name, data)
}

// quote shows the beginning of hostile input in an error of bounded length.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
