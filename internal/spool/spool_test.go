// SPDX-License-Identifier: Apache-2.0

package spool_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/spool"
)

const workspace = "ws_a"

func id(n int) ledger.ID { return ledger.ID{14: byte(n >> 8), 15: byte(n)} }

// ending is the settlement of request n; size bytes of note make it long.
func ending(n, size int) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Settle, ID: id(n), Workspace: workspace, Reservation: &ledger.Reservation{ID: id(n), Workspace: workspace},
		Settlement: &ledger.Settlement{Outcome: "ok", Note: bytes.Repeat([]byte{'w'}, size), Attempts: []ledger.Attempt{{Model: "m", Spend: int64(n)}}},
	}
}

func open(t interface {
	Helper()
	Fatal(...any)
}, path string, maxBytes int64,
) *spool.Spool {
	t.Helper()
	s, err := spool.Open(path, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *spool.Spool, ops ...*ledger.Op) []uint64 {
	t.Helper()
	keys, err := s.Put(ops)
	if err != nil || len(keys) != len(ops) {
		t.Fatalf("kept %d of %d: %v", len(keys), len(ops), err)
	}
	return keys
}

// numbers are the requests whose endings a spool gives back.
func numbers(s *spool.Spool) []int {
	out := []int{}
	for _, k := range s.Left() {
		out = append(out, int(k.Op.Settlement.Attempts[0].Spend))
	}
	return out
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "weir.db.spool") }

func size(t interface{ Fatal(...any) }, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestWhatIsKeptSurvivesAndWhatIsDroppedDoesNot: RES-8.
func TestWhatIsKeptSurvivesAndWhatIsDroppedDoesNot(t *testing.T) {
	path := file(t)
	s := open(t, path, 0)
	empty := size(t, path)
	keys := put(t, s, ending(1, 10), ending(2, 0), ending(3, 5000))
	if err := s.Drop(keys[1:2]); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put([]*ledger.Op{ending(4, 0)}); !errors.Is(err, spool.ErrClosed) {
		t.Errorf("a closed spool: %v", err)
	}
	s = open(t, path, 0)
	if got := numbers(s); !slices.Equal(got, []int{1, 3}) || s.Len() != 2 {
		t.Fatalf("left %d", got)
	}
	if f := s.Found(); f != (spool.Found{}) {
		t.Errorf("found %+v in a whole file", f)
	}
	if err := s.Drop([]uint64{s.Left()[0].Key, s.Left()[1].Key}); err != nil {
		t.Fatal(err)
	}
	if s.Len() != 0 || size(t, path) != empty {
		t.Errorf("%d kept, %d bytes: an emptied spool has %d", s.Len(), size(t, path), empty)
	}
	put(t, s, ending(5, 0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, 0)
	if got := numbers(s); !slices.Equal(got, []int{5}) {
		t.Errorf("left %d", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	_ = s.Close()
}

// TestADamagedRecordIsPutAsideAndTheOthersComeBack: whichever byte it is.
func TestADamagedRecordIsPutAsideAndTheOthersComeBack(t *testing.T) {
	path := file(t)
	s := open(t, path, 0)
	put(t, s, ending(1, 20))
	from := size(t, path)
	put(t, s, ending(2, 20))
	to := size(t, path)
	put(t, s, ending(3, 20))
	_ = s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := from; at < to; at++ {
		bad := slices.Clone(whole)
		bad[at] ^= 0x40
		path := file(t)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, 0)
		if got := numbers(s); !slices.Equal(got, []int{1, 3}) || s.Found().DamagedBytes != int(to-from) {
			t.Fatalf("byte %d: left %d, found %+v", at, got, s.Found())
		}
		_ = s.Close()
		aside, err := os.ReadFile(path + spool.AsideSuffix)
		if err != nil || !bytes.Equal(aside, bad[from:to]) {
			t.Fatalf("byte %d: aside are %d bytes (%v)", at, len(aside), err)
		}
		s = open(t, path, 0)
		if got := numbers(s); !slices.Equal(got, []int{1, 3}) || s.Found() != (spool.Found{}) {
			t.Fatalf("byte %d, the second time: left %d, found %+v", at, got, s.Found())
		}
		_ = s.Close()
	}
}

// TestAForeignFileIsPutAside: it is not Weir's to throw away.
func TestAForeignFileIsPutAside(t *testing.T) {
	path := file(t)
	if err := os.WriteFile(path, []byte("something else altogether"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, 0)
	defer func() { _ = s.Close() }()
	if s.Len() != 0 || s.Found().DamagedBytes != 25 {
		t.Errorf("found %+v", s.Found())
	}
	put(t, s, ending(1, 0))
}

// TestTheBoundHolds: what fits is kept, the rest is refused, and what has been
// applied makes room.
func TestTheBoundHolds(t *testing.T) {
	const bound = 4096
	path := file(t)
	s := open(t, path, bound)
	defer func() { _ = s.Close() }()
	var ops []*ledger.Op
	for n := range 100 {
		ops = append(ops, ending(n+1, 100))
	}
	keys, err := s.Put(ops)
	if !errors.Is(err, spool.ErrFull) || len(keys) == 0 || len(keys) == len(ops) {
		t.Fatalf("kept %d of %d: %v", len(keys), len(ops), err)
	}
	kept := len(keys)
	for i, key := range keys[:kept-1] {
		if err := s.Drop([]uint64{key}); err != nil {
			t.Fatal(err)
		}
		if size(t, path) > bound {
			t.Fatalf("%d bytes after %d drops", size(t, path), i+1)
		}
	}
	more, err := s.Put(ops[kept:])
	if !errors.Is(err, spool.ErrFull) || len(more) != kept-1 || size(t, path) > bound {
		t.Fatalf("kept %d more, before %d: %v", len(more), kept, err)
	}
	_ = s.Close()
	s = open(t, path, bound)
	if got := numbers(s); len(got) != kept || got[0] != kept || got[1] != kept+1 {
		t.Errorf("left %d, kept were %d", got, kept)
	}
}

// TestAFailedWriteKeepsNothingAndSpoilsNothing: BR-159. The disk may be full.
func TestAFailedWriteKeepsNothingAndSpoilsNothing(t *testing.T) {
	path := file(t)
	s := open(t, path, 0)
	put(t, s, ending(1, 0))
	full := errors.New("disk full")
	s.FailWrites(full)
	if keys, err := s.Put([]*ledger.Op{ending(2, 0)}); !errors.Is(err, full) || len(keys) != 0 {
		t.Fatalf("kept %d: %v", len(keys), err)
	}
	s.FailWrites(nil)
	put(t, s, ending(3, 0))
	_ = s.Close()
	s = open(t, path, 0)
	defer func() { _ = s.Close() }()
	if got := numbers(s); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("left %d", got)
	}
}

// moment is the file's size and what it kept then.
type moment struct {
	size int64
	kept []int
}

// TestACrashAtAnyByteLosesNothingKept: whatever was kept and dropped, and
// wherever the file ends, exactly what was kept whole and not dropped comes back.
func TestACrashAtAnyByteLosesNothingKept(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n))
		s := open(t, path, 1<<14)
		keys := map[int]uint64{}
		kept := []int{}
		past := []moment{{size(t, path), kept}}
		note := func() {
			now := size(t, path)
			if now < past[len(past)-1].size {
				past = nil
			}
			past = append(past, moment{now, slices.Clone(kept)})
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				var ops []*ledger.Op
				for range rapid.IntRange(1, 4).Draw(t, "operations") {
					n++
					ops = append(ops, ending(n, rapid.IntRange(0, 300).Draw(t, "note")))
				}
				got, err := s.Put(ops)
				if err != nil && !errors.Is(err, spool.ErrFull) {
					t.Fatal(err)
				}
				for i, key := range got {
					keys[n-len(ops)+1+i] = key
					kept = append(kept, n-len(ops)+1+i)
				}
				note()
			},
			"drop": func(t *rapid.T) {
				if len(kept) == 0 {
					return
				}
				from := rapid.IntRange(0, len(kept)-1).Draw(t, "from")
				to := rapid.IntRange(from+1, len(kept)).Draw(t, "to")
				var gone []uint64
				for _, k := range kept[from:to] {
					gone = append(gone, keys[k])
				}
				if err := s.Drop(gone); err != nil {
					t.Fatal(err)
				}
				kept = slices.Delete(slices.Clone(kept), from, to)
				note()
			},
			"restart": func(t *rapid.T) {
				_ = s.Close()
				s = open(t, path, 1<<14)
				if got := numbers(s); !slices.Equal(got, kept) {
					t.Fatalf("left %d, kept were %d", got, kept)
				}
				for i, k := range s.Left() {
					keys[kept[i]] = k.Key
				}
				past = []moment{{size(t, path), slices.Clone(kept)}}
			},
		})
		_ = s.Close()
		crash(t, path, past)
	})
}

// crash cuts the file anywhere and compares what is left with what was kept just
// before and just after that byte was written.
func crash(t *rapid.T, path string, past []moment) {
	at := rapid.Int64Range(past[0].size, past[len(past)-1].size).Draw(t, "cut")
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, 1<<14)
	defer func() { _ = s.Close() }()
	if s.Found().DamagedBytes != 0 {
		t.Fatalf("found %+v", s.Found())
	}
	i := len(past) - 1
	for past[i].size > at {
		i--
	}
	got, before := numbers(s), past[i].kept
	if i == len(past)-1 || past[i].size == at {
		if !slices.Equal(got, before) {
			t.Fatalf("left %d, kept were %d", got, before)
		}
		return
	}
	after := past[i+1].kept
	if len(after) > len(before) { // a put: some of it, the first ones
		if len(got) < len(before) || len(got) > len(after) || !slices.Equal(got, after[:len(got)]) {
			t.Fatalf("left %d, kept were %d, then %d", got, before, after)
		}
		return
	}
	for _, n := range before { // a drop: some of it
		if slices.Contains(after, n) && !slices.Contains(got, n) {
			t.Fatalf("left %d, kept were %d, then %d", got, before, after)
		}
	}
	if len(got) > len(before) {
		t.Fatalf("left %d, kept were %d, then %d", got, before, after)
	}
}

// FuzzScan: whatever the bytes are, each of them is accounted for, once.
func FuzzScan(f *testing.F) {
	path := filepath.Join(f.TempDir(), "spool")
	s := open(f, path, 0)
	if _, err := s.Put([]*ledger.Op{ending(1, 0), ending(2, 40)}); err != nil {
		f.Fatal(err)
	}
	_ = s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(slices.Clone(whole), make([]byte, 64)...))
	f.Add([]byte("weir.spl12345678wSpRwSpRwSpR"))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, damaged, torn := spool.Scan(b)
		if records+damaged+torn != len(b) || min(records, damaged, torn) < 0 {
			t.Fatalf("%d bytes: %d in records, %d damaged, %d torn", len(b), records, damaged, torn)
		}
	})
}
