// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A spool is a header and records, one after another:
//
//	header: "weir.spl", 8 random bytes
//	record: "wSpR", length of the payload, checksum, payload
//	payload: kind, key, body
//
// Numbers are little-endian, lengths and checksums of 32 bits, keys of 64. The
// checksum (CRC-32C) covers the header's random bytes, the length and the
// payload: what a client may have written into a body is no record, wherever
// reading begins.
const (
	headerMark = "weir.spl"
	saltSize   = 8
	headerSize = len(headerMark) + saltSize

	recordMark = "wSpR"
	recordHead = len(recordMark) + 8
	keySize    = 8
	doneSize   = recordHead + 1 + keySize
	// maxBody bounds one operation; the largest that Weir makes is far smaller.
	maxBody    = 4 << 20
	maxPayload = 1 + keySize + maxBody
)

// What a record says of its key.
const (
	kindKept byte = iota + 1 // its body is an operation that waits
	kindDone                 // that operation has been applied
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(salt, length, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, salt)
	sum = crc32.Update(sum, castagnoli, length)
	return crc32.Update(sum, castagnoli, payload)
}

// appendRecord appends a record of that kind, key and body to b.
func appendRecord(b, salt []byte, kind byte, key uint64, body []byte) []byte {
	b = append(b, recordMark...)
	b = binary.LittleEndian.AppendUint32(b, uint32(1+keySize+len(body)))
	length := b[len(b)-4:]
	payload := append(make([]byte, 0, 1+keySize+len(body)), kind)
	payload = append(binary.LittleEndian.AppendUint64(payload, key), body...)
	b = binary.LittleEndian.AppendUint32(b, checksum(salt, length, payload))
	return append(b, payload...)
}

// record is one that was read; its bytes are file[from:to].
type record struct {
	from, to int
	kind     byte
	key      uint64
	body     []byte
}

// readRecord reads the record at the start of b, if a whole one is there; short
// tells that it would reach past the end of b.
func readRecord(b, salt []byte) (r record, ok, short bool) {
	mark := min(len(b), len(recordMark))
	if string(b[:mark]) != recordMark[:mark] {
		return r, false, false
	}
	if len(b) < recordHead {
		return r, false, true
	}
	length := b[len(recordMark) : recordHead-4]
	n := int64(binary.LittleEndian.Uint32(length))
	if n < 1+keySize || n > int64(maxPayload) {
		return r, false, false
	}
	if int64(len(b)-recordHead) < n {
		return r, false, true
	}
	payload := b[recordHead : recordHead+int(n)]
	if checksum(salt, length, payload) != binary.LittleEndian.Uint32(b[recordHead-4:recordHead]) {
		return r, false, false
	}
	return record{
		to: recordHead + int(n), kind: payload[0],
		key: binary.LittleEndian.Uint64(payload[1 : 1+keySize]), body: payload[1+keySize:],
	}, true, false
}

// scanned is what a file's bytes say. Records, damage and the torn end are, in
// their order, all that follows the header.
type scanned struct {
	records []record
	// damaged are parts that are no record and no torn end.
	damaged [][]byte
	// torn is the length of a record at the end that was never written whole,
	// and so never promised to anybody.
	torn int
}

// scan reads every record that is whole. Past a part that is none, it goes on at
// the next that is.
func scan(file []byte) (s scanned, salt []byte) {
	if len(file) < headerSize {
		s.torn = len(file) // nothing is kept before the header is on the disk
		return s, nil
	}
	if string(file[:len(headerMark)]) != headerMark {
		s.damaged = [][]byte{file}
		return s, nil
	}
	salt = file[len(headerMark):headerSize]
	for at := headerSize; at < len(file); {
		r, ok, short := readRecord(file[at:], salt)
		if ok {
			r.from, r.to = at, at+r.to
			s.records = append(s.records, r)
			at = r.to
			continue
		}
		next := resume(file, at+1, salt)
		switch part := file[at:next]; {
		case next == len(file) && (short || zero(part)):
			s.torn = len(part)
		default:
			s.damaged = append(s.damaged, part)
		}
		at = next
	}
	return s, salt
}

// resume finds the next whole record from at on, or the end.
func resume(file []byte, at int, salt []byte) int {
	for {
		i := bytes.Index(file[at:], []byte(recordMark))
		if i < 0 {
			return len(file)
		}
		at += i
		if _, ok, _ := readRecord(file[at:], salt); ok {
			return at
		}
		at++
	}
}

// zero tells whether a part holds nothing: space that a file was given and that
// nobody has written to.
func zero(part []byte) bool { return len(bytes.Trim(part, "\x00")) == 0 }
