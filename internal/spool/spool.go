// SPDX-License-Identifier: Apache-2.0

// Package spool keeps, in a local file that survives a restart, endings of
// requests that the store could not take (RES-8). Nothing is written to it while
// the store works.
//
// Applying a kept operation twice books it once (ledger), so a spool may forget
// late, and never early. It decides nothing and applies nothing.
package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/frame"
	"github.com/weirhq/weir/internal/ledger"
)

const (
	fileMode = 0o600
	// DefaultMaxBytes bounds the file: some 100,000 endings.
	DefaultMaxBytes = int64(256 << 20)
	// reserveBytes of the disk are the spool's before it needs them: what most
	// often stops a store is a full disk, and that must not stop the spool too.
	reserveBytes = int64(8 << 20)
	// AsideSuffix names the file beside the spool for what nobody could apply:
	// unreadable parts, and settlements without a reservation.
	AsideSuffix   = ".aside"
	rewriteSuffix = ".new"
)

// What Put answers with; any other error is the file system's.
var (
	ErrFull   = errors.New("the spool is at its bound")
	ErrClosed = errors.New("the spool is closed")
)

// Kept is one operation that waits, under the key that Drop forgets it by.
type Kept struct {
	Key uint64
	Op  *ledger.Op
}

// Found is what Open met besides whole records.
type Found struct {
	// DamagedBytes could not be read and were moved to the file AsideSuffix.
	DamagedBytes int
	// TornBytes at the end belonged to a record that was never written whole.
	TornBytes int
}

// extent is where a record lies in the file.
type extent struct{ from, size int64 }

// Spool is an open file. It is safe for concurrent use. Its owner sees to it
// that no other process has it open.
type Spool struct {
	path     string
	maxBytes int64
	left     []Kept
	found    Found

	mu     sync.Mutex // guards what follows
	file   *os.File   // nil: closed
	salt   []byte
	size   int64
	next   uint64
	live   map[uint64]extent
	faults faults
}

// faults are what tests put in the place of the disk.
type faults struct{ write func() error }

// Open reads the file, or makes it. A record at its end that is cut short is
// dropped; a damaged part is put aside first. maxBytes 0 is DefaultMaxBytes.
func Open(path string, maxBytes int64) (*Spool, error) {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	s := &Spool{path: path, maxBytes: maxBytes, next: 1, live: make(map[uint64]extent)}
	var err error
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if err := s.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Spool) read() error {
	file, err := io.ReadAll(s.file)
	if err != nil {
		return err
	}
	found, salt := scan(file)
	s.salt, s.found.TornBytes = salt, found.Torn
	var damaged [][]byte
	for _, part := range found.Damaged {
		damaged = append(damaged, file[part.From:part.To])
	}
	done := make(map[uint64]bool)
	for _, r := range found.Records {
		s.next = max(s.next, r.Key+1)
		if r.Kind == kindDone {
			done[r.Key] = true
		}
	}
	for _, r := range found.Records {
		if r.Kind == kindDone || done[r.Key] {
			continue
		}
		op, err := ledger.DecodeOp(r.Body)
		if err != nil || r.Kind != kindKept {
			damaged = append(damaged, file[r.From:r.To]) // perhaps a newer program's
			continue
		}
		s.left = append(s.left, Kept{Key: r.Key, Op: op})
		s.live[r.Key] = extent{from: int64(r.From), size: int64(r.To - r.From)}
	}
	if err := s.setAside(damaged); err != nil {
		return err
	}
	for _, part := range damaged {
		s.found.DamagedBytes += len(part)
	}
	s.size = int64(len(file))
	if salt != nil && len(found.Records) == len(s.left) && found.Torn == 0 && len(damaged) == 0 {
		s.reserve()
		return nil
	}
	return s.rewrite()
}

// SetAside drops operations that cannot be applied, after it has moved their
// records to the file AsideSuffix.
func (s *Spool) SetAside(keys []uint64) error {
	if len(keys) == 0 {
		return nil
	}
	parts, err := s.records(keys)
	if err == nil {
		err = s.setAside(parts)
	}
	if err != nil {
		return err
	}
	return s.Drop(keys)
}

func (s *Spool) records(keys []uint64) (parts [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil, ErrClosed
	}
	for _, key := range keys {
		e := s.live[key]
		part := make([]byte, e.size)
		if _, err := s.file.ReadAt(part, e.from); err != nil {
			return nil, fmt.Errorf("read a record again: %w", err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// setAside appends what could not be applied to a file of its own, for a person
// to look at.
func (s *Spool) setAside(parts [][]byte) (err error) {
	if len(parts) == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("put records of the spool aside: %w", err)
		}
	}()
	f, err := os.OpenFile(s.path+AsideSuffix, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, part := range parts {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Sync()
}

// rewrite makes the file anew with what waits alone. A crash leaves the old file
// or the new one.
func (s *Spool) rewrite() error {
	salt := make([]byte, frame.SaltSize)
	_, _ = rand.Read(salt) // never fails since Go 1.24
	file := append([]byte(headerMark), salt...)
	live := make(map[uint64]extent, len(s.live))
	for _, key := range slices.Sorted(maps.Keys(s.live)) {
		e := s.live[key]
		old := make([]byte, e.size)
		if _, err := s.file.ReadAt(old, e.from); err != nil {
			return fmt.Errorf("read a record again: %w", err)
		}
		from := len(file)
		file = frame.Append(file, salt, kindKept, key, old[frame.Overhead:])
		live[key] = extent{from: int64(from), size: int64(len(file) - from)}
	}
	if err := replace(s.file, s.path, file); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR, fileMode)
	if err != nil {
		s.file = nil
		return err
	}
	s.file, s.salt, s.size, s.live = f, salt, int64(len(file)), live
	s.reserve()
	return nil
}

// replace puts a new file in the place of an open one, which it closes: not every
// system gives an open file's name away.
func replace(old *os.File, path string, content []byte) error {
	f, err := os.OpenFile(path+rewriteSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+rewriteSuffix))
	}
	if err := errors.Join(old.Close(), os.Rename(path+rewriteSuffix, path)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Left are the operations that an earlier process kept and nobody has dropped,
// in the order in which they were kept.
func (s *Spool) Left() []Kept { return s.left }

// Found is what Open met besides whole records.
func (s *Spool) Found() Found { return s.found }

// Len is how many operations are kept now.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// Put keeps operations: those that it returns keys for, the first ones, survive
// the process and the machine. One flush serves all of them. When it cannot keep
// all, the error says why; ErrFull is the bound.
func (s *Spool) Put(ops []*ledger.Op) ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil, ErrClosed
	}
	batch, extents, full := s.pack(ops)
	if full != nil && s.dead() > s.size/2 {
		if err := s.rewrite(); err != nil {
			return nil, fmt.Errorf("rewrite the spool: %w", err)
		}
		batch, extents, full = s.pack(ops)
	}
	if len(extents) == 0 {
		return nil, full
	}
	first := s.next
	s.next += uint64(len(extents)) // a failed key is not given again
	if err := s.write(batch, true); err != nil {
		return nil, fmt.Errorf("write to the spool: %w", err)
	}
	keys := make([]uint64, len(extents))
	for i, e := range extents {
		keys[i] = first + uint64(i)
		s.live[keys[i]] = e
	}
	return keys, full
}

// pack makes records of as many operations as there is room for, leaving room
// to mark each as done.
func (s *Spool) pack(ops []*ledger.Op) (batch []byte, extents []extent, err error) {
	for i, op := range ops {
		from := len(batch)
		body := op.Encode()
		if len(body) > maxBody {
			return batch, extents, fmt.Errorf("an operation of %d bytes: at most %d", len(body), maxBody)
		}
		more := frame.Append(batch, s.salt, kindKept, s.next+uint64(i), body)
		if s.size+int64(len(more)+frame.Overhead*(len(s.live)+i+1)) > s.maxBytes {
			return batch, extents, ErrFull
		}
		batch = more
		extents = append(extents, extent{from: s.size + int64(from), size: int64(len(batch) - from)})
	}
	return batch, extents, nil
}

// dead is how many bytes of the file nobody waits for.
func (s *Spool) dead() int64 {
	dead := s.size - int64(headerSize)
	for _, e := range s.live {
		dead -= e.size
	}
	return dead
}

// write appends, or changes nothing that is looked at again.
func (s *Spool) write(b []byte, flush bool) error {
	var err error
	if s.faults.write != nil {
		err = s.faults.write()
	}
	if err == nil {
		_, err = s.file.WriteAt(b, s.size)
	}
	if err == nil && flush {
		err = s.file.Sync()
	}
	if err != nil {
		_ = s.file.Truncate(s.size) // the next record is written over it in any case
		return err
	}
	s.size += int64(len(b))
	return nil
}

// Drop forgets operations that have been applied. It does not wait for the disk:
// one that comes back after a crash is answered Already.
func (s *Spool) Drop(keys []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return ErrClosed
	}
	var marks []byte
	for _, key := range keys {
		if _, ok := s.live[key]; ok {
			delete(s.live, key)
			marks = frame.Append(marks, s.salt, kindDone, key, nil)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	if len(s.live) > 0 {
		if err := s.write(marks, false); err != nil {
			return fmt.Errorf("mark spooled operations as applied: %w", err)
		}
		return nil
	}
	if err := s.file.Truncate(int64(headerSize)); err != nil {
		return fmt.Errorf("empty the spool: %w", err)
	}
	s.size = int64(headerSize)
	s.reserve()
	return nil
}

// Close releases the file; what is kept in it stays there.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// reserve asks for disk space beyond the end. Where that is not to be had the
// spool works without.
func (s *Spool) reserve() {
	_ = allocate(s.file, min(reserveBytes, s.maxBytes))
}

// syncDir makes a file's name durable.
func syncDir(dir string) (err error) {
	if runtime.GOOS == "windows" {
		return nil // it does so by itself, and has no call for it
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
