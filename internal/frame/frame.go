// SPDX-License-Identifier: Apache-2.0

// Package frame writes and reads the records of files that grow by appending, and
// tells what a crash has left of them. What a record says, and the header before
// the first one, are the file's own.
//
// A record is
//
//	"wSpR", length of the payload, checksum, payload
//
// and a payload kind, key, body. Numbers are little-endian, lengths and checksums
// of 32 bits, keys of 64. The checksum (CRC-32C) covers the salt of the file, the
// length and the payload: what somebody may have written into a body is no record,
// wherever reading begins, and neither is one of an earlier use of the file.
package frame

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

const (
	mark    = "wSpR"
	head    = len(mark) + 8
	keySize = 8
	least   = 1 + keySize // of a payload
	// Overhead is what a record is longer than its body.
	Overhead = head + least
	// SaltSize is the length of a file's salt.
	SaltSize = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is that of what is no record: a file's header.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func checksum(salt, length, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, salt)
	sum = crc32.Update(sum, castagnoli, length)
	return crc32.Update(sum, castagnoli, payload)
}

// Append appends a record of that kind, key and body to b.
func Append(b, salt []byte, kind byte, key uint64, body []byte) []byte {
	from := len(b)
	b = append(b, mark...)
	b = binary.LittleEndian.AppendUint32(b, uint32(least+len(body)))
	b = append(b, 0, 0, 0, 0, kind)
	b = binary.LittleEndian.AppendUint64(b, key)
	b = append(b, body...)
	record := b[from:]
	sum := checksum(salt, record[len(mark):head-4], record[head:])
	binary.LittleEndian.PutUint32(record[head-4:], sum)
	return b
}

// Record is one that was read; its bytes are file[From:To].
type Record struct {
	From, To int
	Kind     byte
	Key      uint64
	Body     []byte
}

// read reads the record at the start of b, if a whole one is there; short tells
// that it would reach past the end of b.
func read(b, salt []byte, maxBody int) (r Record, ok, short bool) {
	begun := min(len(b), len(mark))
	if string(b[:begun]) != mark[:begun] {
		return r, false, false
	}
	if len(b) < head {
		return r, false, true
	}
	length := b[len(mark) : head-4]
	n := int64(binary.LittleEndian.Uint32(length))
	if n < int64(least) || n > int64(least)+int64(maxBody) {
		return r, false, false
	}
	if int64(len(b)-head) < n {
		return r, false, true
	}
	payload := b[head : head+int(n)]
	if checksum(salt, length, payload) != binary.LittleEndian.Uint32(b[head-4:head]) {
		return r, false, false
	}
	return Record{
		To: head + int(n), Kind: payload[0], Key: binary.LittleEndian.Uint64(payload[1:least]), Body: payload[least:],
	}, true, false
}

// Scanned is what a file's bytes say. Records, damage and the torn end are, in
// their order, all that is scanned.
type Scanned struct {
	Records []Record
	// Damaged are parts that are no record and no torn end.
	Damaged []Span
	// Torn is the length of a record at the end that was never written whole, and
	// so never promised to anybody.
	Torn int
}

// Span is file[From:To].
type Span struct{ From, To int }

// Scan reads every record from at on that is whole and has no longer body. Past a
// part that is none, it goes on at the next that is.
func Scan(file []byte, at int, salt []byte, maxBody int) (s Scanned) {
	for at < len(file) {
		r, ok, short := read(file[at:], salt, maxBody)
		if ok {
			r.From, r.To = at, at+r.To
			s.Records = append(s.Records, r)
			at = r.To
			continue
		}
		next := resume(file, at+1, salt, maxBody)
		switch part := file[at:next]; {
		case next == len(file) && (short || zero(part)):
			s.Torn = len(part)
		default:
			s.Damaged = append(s.Damaged, Span{at, next})
		}
		at = next
	}
	return s
}

// resume finds the next whole record from at on, or the end.
func resume(file []byte, at int, salt []byte, maxBody int) int {
	for {
		i := bytes.Index(file[at:], []byte(mark))
		if i < 0 {
			return len(file)
		}
		at += i
		if _, ok, _ := read(file[at:], salt, maxBody); ok {
			return at
		}
		at++
	}
}

// zero tells whether a part holds nothing: space that a file was given and that
// nobody has written to.
func zero(part []byte) bool { return len(bytes.Trim(part, "\x00")) == 0 }
