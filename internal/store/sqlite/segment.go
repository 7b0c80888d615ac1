// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/frame"
	"github.com/weirhq/weir/internal/store"
)

// A segment is one of the journal's two files (ADR 0013): a header, twice, and
// records of package frame, whose keys are the batches' rows and whose bodies
// what packer packs. A header is
//
//	"weir.jnl", the journal's id, turn, first row, salt, checksum
//
// in little-endian numbers of 64 bits, the checksum of 32. It is written to its
// first place and flushed before it is written to the second: one of them can be
// read whatever a crash cuts short.
const (
	headerMark = "weir.jnl"
	headerSize = len(headerMark) + idSize + 8 + 8 + frame.SaltSize + 4
	headerGap  = 4 << 10 // from the first header to the second
	recordsAt  = 2 * headerGap
	idSize     = 16

	kindBatch byte = 1
	// maxRow bounds what a batch of store.MaxBatch operations packs.
	maxRow = 256 << 20
)

// journalID tells which store's journal a file is, and which of its journals.
type journalID [idSize]byte

func newJournalID() (id journalID) {
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	return id
}

type header struct {
	id    journalID
	turn  uint64 // of the two segments that with the higher one is written to
	first int64  // the row of its first record
	salt  [frame.SaltSize]byte
}

func newHeader(id journalID, turn uint64, first int64) header {
	h := header{id: id, turn: turn, first: first}
	_, _ = rand.Read(h.salt[:])
	return h
}

func (h *header) encode() []byte {
	b := append(make([]byte, 0, headerSize), headerMark...)
	b = append(b, h.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.turn)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.first))
	b = append(b, h.salt[:]...)
	return binary.LittleEndian.AppendUint32(b, frame.Checksum(b))
}

func decodeHeader(b []byte) (h header, ok bool) {
	if len(b) < headerSize {
		return h, false
	}
	b = b[:headerSize]
	sum := b[headerSize-4:]
	if string(b[:len(headerMark)]) != headerMark || frame.Checksum(b[:headerSize-4]) != binary.LittleEndian.Uint32(sum) {
		return h, false
	}
	b = b[len(headerMark):]
	b = b[copy(h.id[:], b):]
	h.turn, h.first = binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))
	copy(h.salt[:], b[16:])
	return h, true
}

// segment is one that is written to.
type segment struct {
	header

	file *os.File
	at   int64 // where the next record goes
	room int64 // so long is the file: within it a flush is cheaper
	last int64 // the newest row in it; first-1: none
}

// makeSegment makes a file that is whole as soon as it has its name. It is closed
// for that: not every system gives an open file's name away.
func makeSegment(path string, h header) (s *segment, err error) {
	f, err := os.OpenFile(path+partSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return nil, err
	}
	s = &segment{file: f, room: recordsAt}
	if err = f.Truncate(recordsAt); err == nil {
		err = s.begin(h)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+partSuffix, path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path+partSuffix))
	}
	s.file, err = os.OpenFile(path, os.O_RDWR, fileMode)
	return s, err
}

// begin forgets what the segment has and takes another turn.
func (s *segment) begin(h header) error {
	for _, at := range [2]int64{0, headerGap} {
		if _, err := s.file.WriteAt(h.encode(), at); err != nil {
			return err
		}
		if err := frame.Flush(s.file); err != nil {
			return err
		}
	}
	s.header, s.at, s.last = h, recordsAt, h.first-1
	return nil
}

// append writes records up to a row and has them on the disk when it returns.
func (s *segment) append(records []byte, row int64) error {
	if _, err := s.file.WriteAt(records, s.at); err != nil {
		return err
	}
	if err := frame.Flush(s.file); err != nil {
		return err
	}
	s.at += int64(len(records))
	s.room = max(s.room, s.at)
	s.last = row
	return nil
}

// found is what a segment's file says.
type found struct {
	header

	records []frame.Record
	last    int64 // the newest row; first-1: none
}

// readSegment reads a file whole: a segment is about segmentBytes, or what the
// bound of the journal lets it have more.
func readSegment(path string) (*found, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	h, ok := decodeHeader(file)
	if second, whole := decodeHeader(file[min(len(file), headerGap):]); whole && (!ok || second.turn > h.turn) {
		h, ok = second, true
	}
	if !ok || len(file) < recordsAt {
		return nil, fmt.Errorf("%s is no journal: %w", name, store.ErrDamaged)
	}
	scanned := frame.Scan(file, recordsAt, h.salt[:], maxRow)
	f := &found{header: h, records: scanned.Records, last: h.first - 1}
	for i := range f.records {
		r := &f.records[i]
		if r.Kind != kindBatch || int64(r.Key) != f.last+1 {
			return nil, fmt.Errorf("%s: row %d comes after row %d: %w", name, r.Key, f.last, store.ErrDamaged)
		}
		f.last++
	}
	// Behind the last record is what an earlier turn left, or a record that was
	// cut short, and so never answered. Between two records is damage.
	if n := len(f.records); n > 0 && len(scanned.Damaged) > 0 && scanned.Damaged[0].From < f.records[n-1].From {
		return nil, fmt.Errorf("%s cannot be read at byte %d: %w", name, scanned.Damaged[0].From, store.ErrDamaged)
	}
	return f, nil
}
