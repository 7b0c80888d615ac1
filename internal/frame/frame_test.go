// SPDX-License-Identifier: Apache-2.0

package frame_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/frame"
)

const maxBody = 64

// file is records of the given bodies behind some bytes of a header.
func file(salt []byte, bodies [][]byte) (b []byte) {
	b = append(b, "header"...)
	for i, body := range bodies {
		b = frame.Append(b, salt, 1, uint64(i), body)
	}
	return b
}

func TestWhatIsAppendedIsReadAndACutEndIsTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.SliceOfN(rapid.Byte(), frame.SaltSize, frame.SaltSize).Draw(t, "salt")
		bodies := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, maxBody), 1, 8).Draw(t, "bodies")
		whole := file(salt, bodies)
		last := len(file(salt, bodies[:len(bodies)-1]))
		cut := rapid.IntRange(last, len(whole)).Draw(t, "cut")
		zeros := rapid.IntRange(0, 40).Draw(t, "zeros")
		s := frame.Scan(append(slices.Clone(whole[:cut]), make([]byte, zeros)...), len("header"), salt, maxBody)
		want := bodies
		if cut < len(whole) {
			want = bodies[:len(bodies)-1]
		}
		if len(s.Records) < len(want) || len(s.Records) > len(bodies) {
			t.Fatalf("%d records, want %d", len(s.Records), len(want))
		}
		for i, r := range s.Records {
			if r.Key != uint64(i) || r.Kind != 1 || !bytes.Equal(r.Body, bodies[i]) || r.To-r.From != frame.Overhead+len(bodies[i]) {
				t.Fatalf("record %d is %+v, want %x", i, r, bodies[i])
			}
		}
	})
}

// What an earlier use of the file left, and what a client has written, is no record.
func TestRecordsOfAnotherSaltAreNone(t *testing.T) {
	mine, other := []byte("salt one"), []byte("salt two")
	b := frame.Append(nil, mine, 1, 7, frame.Append(nil, other, 1, 8, []byte("inside")))
	b = frame.Append(b, other, 1, 9, []byte("behind"))
	s := frame.Scan(b, 0, mine, 1<<10)
	if len(s.Records) != 1 || s.Records[0].Key != 7 || len(s.Damaged) != 1 || s.Damaged[0].To != len(b) {
		t.Errorf("%+v", s)
	}
}

func TestDamageHidesNoLaterRecord(t *testing.T) {
	salt := []byte("12345678")
	b := file(salt, [][]byte{[]byte("one"), []byte("two"), []byte("three")})
	second := len(file(salt, [][]byte{[]byte("one")}))
	b[second+5] ^= 1
	s := frame.Scan(b, len("header"), salt, maxBody)
	if len(s.Records) != 2 || s.Records[1].Key != 2 || len(s.Damaged) != 1 || s.Damaged[0].From != second {
		t.Errorf("%+v", s)
	}
}

func TestAFlushOfAClosedFileFails(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := frame.Flush(f); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := frame.Flush(f); err == nil {
		t.Error("a closed file was flushed")
	}
}

func FuzzScan(f *testing.F) {
	salt := []byte("12345678")
	whole := file(salt, [][]byte{nil, []byte("body")})
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("wSpRwSpRwSpR"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := frame.Scan(b, 0, salt, maxBody)
		n := s.Torn
		for _, r := range s.Records {
			n += r.To - r.From
		}
		for _, part := range s.Damaged {
			n += part.To - part.From
		}
		if n != len(b) {
			t.Fatalf("%d of %d bytes are accounted for", n, len(b))
		}
	})
}
