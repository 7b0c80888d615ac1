// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/frame"
	"github.com/weirhq/weir/internal/store"
)

// segmentBytes is how long a segment grows before the other one takes its turn.
const (
	segmentBytes = int64(16 << 20)
	// Segments are given their length soon after they are made, extendBytes at a
	// time: a flush within a file's length is twice as fast.
	extendBytes = int64(256 << 10)

	partSuffix = ".part"
)

// journalPaths are the two files beside the database. SQLite has "-journal" for
// itself.
func journalPaths(path string) [2]string {
	return [2]string{path + ".journal0", path + ".journal1"}
}

// journal is what was acknowledged and may not be in the tables yet, or not
// lastingly: two segments that take turns. A turn ends when the segment is long
// and the other one's rows are in the tables; until then it grows. A fold is
// flushed: what it moved is not written over before it is on the disk.
type journal struct {
	id         journalID
	now, other *segment
	// folded is the newest row that the tables have in them, on the disk.
	folded  int64
	limit   int64
	broken  bool                           // what the last write left is not known
	fault   func(write func() error) error // tests lose writes with it
	records []byte                         // of one write
}

// makeJournal makes both files; first is the row of the first batch.
func makeJournal(path string, id journalID, first, limit int64) (*journal, error) {
	j := &journal{id: id, folded: first - 1, limit: limit}
	paths := journalPaths(path)
	var err error
	if j.other, err = makeSegment(paths[1], newHeader(id, 0, first)); err == nil {
		j.now, err = makeSegment(paths[0], newHeader(id, 1, first))
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("make the journal: %w", errors.Join(err, j.close()))
	}
	return j, nil
}

// add makes a batch's row last. After a failure it is not known whether it does,
// and the journal is of no more use.
func (j *journal) add(row int64, body []byte) error {
	j.records = frame.Append(j.records[:0], j.now.salt[:], kindBatch, uint64(row), body)
	if j.now.at+int64(len(j.records)) > j.limit && j.now.last >= j.now.first && j.other.last <= j.folded {
		if err := j.turn(row); err != nil {
			j.broken = true
			return fmt.Errorf("begin a segment of the journal: %w", errors.Join(store.ErrUnavailable, err))
		}
		j.records = frame.Append(j.records[:0], j.now.salt[:], kindBatch, uint64(row), body)
	}
	write := func() error { return j.now.append(j.records, row) }
	if fault := j.fault; fault != nil {
		whole := write
		write = func() error { return fault(whole) }
	}
	if cap(j.records) > keepPacker {
		defer func() { j.records = nil }()
	}
	if err := write(); err != nil {
		j.broken = true
		return errors.Join(store.ErrUnknownOutcome, err)
	}
	return nil
}

func (j *journal) turn(row int64) error {
	if err := j.other.begin(newHeader(j.id, j.now.turn+1, row)); err != nil {
		return err
	}
	j.now, j.other = j.other, j.now
	return nil
}

// extend makes a segment a little longer that has not its length. The caller
// flushes the file that it returns, and asks again; nil: all have.
func (j *journal) extend() *os.File {
	for _, s := range [2]*segment{j.now, j.other} {
		if s.room >= j.limit {
			continue
		}
		n, err := s.file.WriteAt(make([]byte, extendBytes), s.room)
		s.room += int64(n)
		if err == nil {
			return s.file
		}
	}
	return nil
}

func (j *journal) close() error {
	var errs []error
	for _, s := range [2]*segment{j.now, j.other} {
		if s != nil && s.file != nil {
			errs = append(errs, s.file.Close())
		}
	}
	return errors.Join(errs...)
}

// holding is what the tables know of the journal.
type holding struct {
	through int64     // the newest row that they have in them
	id      journalID // of the last journal
	open    bool      // there may be rows in it that the tables lack
}

var (
	errMissing = fmt.Errorf("it is missing, and may have batches that were answered: %w", store.ErrDamaged)
	errForeign = fmt.Errorf("it is another store's journal: %w", store.ErrDamaged)
	errLater   = fmt.Errorf("it is of a later state of this store than the database file: %w", store.ErrDamaged)
)

// readJournal are the rows that the tables lack, in order. It refuses whatever
// does not join on to them.
func readJournal(path string, have *holding) ([]frame.Record, error) {
	var both [2]*found
	for i, file := range journalPaths(path) {
		f, err := readSegment(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = errMissing
		} else if err == nil && f.id != have.id {
			err = errForeign
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		both[i] = f
	}
	older, newer := both[0], both[1]
	if older.turn > newer.turn {
		older, newer = newer, older
	}
	switch {
	case newer.turn != older.turn+1 || newer.first != older.last+1:
		return nil, fmt.Errorf("the journal ends at row %d and goes on at row %d: %w", older.last, newer.first, store.ErrDamaged)
	case older.first > have.through+1:
		return nil, fmt.Errorf("the journal begins at row %d, the tables end at row %d: %w", older.first, have.through, store.ErrDamaged)
	case newer.last < have.through:
		return nil, fmt.Errorf("the journal ends at row %d, the tables at row %d: %w", newer.last, have.through, store.ErrDamaged)
	}
	var rows []frame.Record
	for _, f := range [2]*found{older, newer} {
		for _, r := range f.records {
			if int64(r.Key) > have.through {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// leftJournal looks at files beside a store that needs none: a crash may leave
// them, but then they say nothing that the tables lack.
func leftJournal(path string, have *holding) error {
	for _, file := range journalPaths(path) {
		f, err := readSegment(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		case err != nil:
		case f.id != have.id && len(f.records) > 0:
			err = errForeign
		case f.id == have.id && f.last > have.through:
			err = errLater
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// removeJournal removes the files, and what a crash left of their making.
func removeJournal(path string) error {
	removed := false
	for _, file := range journalPaths(path) {
		for _, name := range [2]string{file, file + partSuffix} {
			err := os.Remove(name)
			removed = removed || err == nil
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove the journal: %w", err)
			}
		}
	}
	if !removed {
		return nil
	}
	return syncFolder(filepath.Dir(path))
}
