// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/store"
)

// compatible begins the line of a migration that says since which schema a
// program may be to go on over it.
const compatible = "-- Compatible since: "

// Migrations reads what the files of a schema's migrations say of themselves, in
// order. Their names begin with their numbers, which are 1, 2, 3 and so on.
func Migrations(files fs.FS) ([]store.Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	var list []store.Migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read a migration: %w", err)
		}
		m, err := migration(name, text)
		if err == nil && m.Version != int64(i+1) {
			err = fmt.Errorf("its number is not %d", i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("read the migration %s: %w", name, err)
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, errors.New("there are no migrations")
	}
	return list, nil
}

func migration(name string, text []byte) (m store.Migration, err error) {
	number, rest, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), "_")
	m.Name = rest
	if m.Version, err = strconv.ParseInt(number, 10, 32); err != nil {
		return m, errors.New("its name begins with no number")
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() && strings.HasPrefix(lines.Text(), "--") {
		since, ok := strings.CutPrefix(lines.Text(), compatible)
		if !ok {
			continue
		}
		m.CompatibleSince, err = strconv.ParseInt(strings.TrimSpace(since), 10, 32)
		if err != nil || m.CompatibleSince < 1 || m.CompatibleSince > m.Version {
			return m, fmt.Errorf("%q: it is a schema from 1 to its own", lines.Text())
		}
		return m, nil
	}
	return m, fmt.Errorf("its first lines say no %q", compatible+"N")
}

// Schema is that of a store which has had the first have of list, or more.
// compatible is what the store says of itself, 0: nothing.
func Schema(list []store.Migration, have, compatible int64) store.Schema {
	s := store.Schema{Have: have, Want: list[len(list)-1].Version, Compatible: compatible}
	for _, m := range list {
		if m.Version > have {
			s.Pending = append(s.Pending, m)
		} else if compatible == 0 {
			s.Compatible = max(s.Compatible, m.CompatibleSince)
		}
	}
	if compatible == 0 && have > s.Want {
		s.Compatible = have // nobody says how far back it reaches
	}
	return s
}

// Reach is what a program has to know after these migrations of a schema.
func Reach(s *store.Schema) int64 {
	reach := s.Compatible
	for _, m := range s.Pending {
		reach = max(reach, m.CompatibleSince)
	}
	return reach
}
