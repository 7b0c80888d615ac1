// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
)

// ID is a request's id: 128 bits, the first 48 of them Unix milliseconds, so
// that ids sort by time (ERR-4, ENGINE 6). The gateway makes it, never a client.
type ID [16]byte

var idAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const idPrefix = "req_"

// NewID builds an id from the instant in Unix microseconds and ten random bytes.
func NewID(at int64, random [10]byte) ID {
	var id ID
	binary.BigEndian.PutUint64(id[:8], uint64(at/1000)<<16)
	copy(id[6:], random[:])
	return id
}

// String is "req_" and 26 characters of lower-case base 32.
func (id ID) String() string { return idPrefix + idAlphabet.EncodeToString(id[:]) }

// Millis is the id's own time in Unix milliseconds.
func (id ID) Millis() int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) }

// IsZero tells whether no id was given.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by time, then by their random part.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (ID, error) {
	var id ID
	raw, ok := strings.CutPrefix(s, idPrefix)
	if !ok {
		return id, fmt.Errorf("request id %q does not start with %q", s, idPrefix)
	}
	b, err := idAlphabet.DecodeString(raw)
	if err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	// One spelling each: the decoder skips line breaks and the last two bits.
	if id.String() != s {
		return ID{}, fmt.Errorf("request id %q is not %s and 26 characters of base 32", s, idPrefix)
	}
	return id, nil
}
