// SPDX-License-Identifier: Apache-2.0

package spool

import "github.com/weirhq/weir/internal/frame"

// A spool is a header and records, one after another (package frame):
//
//	header: "weir.spl", 8 random bytes: the salt
const (
	headerMark = "weir.spl"
	headerSize = len(headerMark) + frame.SaltSize
	// maxBody bounds one operation; the largest that Weir makes is far smaller.
	maxBody = 4 << 20
)

// What a record says of its key.
const (
	kindKept byte = iota + 1 // its body is an operation that waits
	kindDone                 // that operation has been applied
)

// scan reads every record that is whole; no salt: the file is no spool.
func scan(file []byte) (s frame.Scanned, salt []byte) {
	if len(file) < headerSize {
		s.Torn = len(file) // nothing is kept before the header is on the disk
		return s, nil
	}
	if string(file[:len(headerMark)]) != headerMark {
		s.Damaged = []frame.Span{{From: 0, To: len(file)}}
		return s, nil
	}
	salt = file[len(headerMark):headerSize]
	return frame.Scan(file, headerSize, salt, maxBody), salt
}
