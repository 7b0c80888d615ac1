// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
)

// Types of parameters, by PostgreSQL's own numbers.
const (
	oidInt  = 20
	oidText = 25

	oidByteaArray = 1001
	oidTextArray  = 1009
	oidIntArray   = 1016
	oidUUIDArray  = 2951

	oidBytea = 17
	oidUUID  = 2950
)

// statement is one of the batch's own. Its name is that of the prepared one.
type statement struct {
	name, sql string
	types     []uint32
}

// step is one statement of a round trip; row, if set, gets each of its rows and
// must not keep the values.
type step struct {
	*statement
	args [][]byte
	row  func(v [][]byte) error
}

// binaryFormat is what all parameters and results travel in.
var binaryFormat = []int16{1}

// round sends steps in one round trip. Outside of a transaction it is one: it is
// committed when the last step is done, or as a whole not at all.
func (b *Book) round(ctx context.Context, conn *pgconn.PgConn, steps []step) error {
	batch := &pgconn.Batch{}
	for i := range steps {
		s := &steps[i]
		if b.options.Pooling {
			batch.ExecParams(s.sql, s.args, s.types, binaryFormat, binaryFormat)
		} else {
			batch.ExecPrepared(s.name, s.args, binaryFormat, binaryFormat)
		}
	}
	results := conn.ExecBatch(ctx, batch)
	var failed error
	for i := 0; results.NextResult(); i++ {
		rows := results.ResultReader()
		for rows.NextRow() {
			if failed == nil && steps[i].row != nil {
				failed = steps[i].row(rows.Values())
			}
		}
		if _, err := rows.Close(); err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", steps[i].name, err)
		}
	}
	return errors.Join(results.Close(), failed)
}

// array packs n elements of one type for the wire; put appends one, without its
// length.
func array(element uint32, n, size int, put func(to []byte, i int) []byte) []byte {
	b := make([]byte, 0, 20+n*(4+size))
	if n == 0 {
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, 0)
		return binary.BigEndian.AppendUint32(b, element)
	}
	for _, v := range [...]uint32{1, 0, element, uint32(n), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for i := range n {
		at := len(b)
		b = put(append(b, 0, 0, 0, 0), i)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b
}

func texts(n int, of func(i int) string) []byte {
	return array(oidText, n, 24, func(to []byte, i int) []byte { return append(to, escape(of(i))...) })
}

func ints(n int, of func(i int) int64) []byte {
	return array(oidInt, n, 8, func(to []byte, i int) []byte { return binary.BigEndian.AppendUint64(to, uint64(of(i))) })
}

func uuids(n int, of func(i int) ledger.ID) []byte {
	return array(oidUUID, n, 16, func(to []byte, i int) []byte {
		id := of(i)
		return append(to, id[:]...)
	})
}

// blobs has its elements appended where they travel from.
func blobs(n int, put func(to []byte, i int) []byte) []byte { return array(oidBytea, n, 512, put) }

func integerArg(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// integer reads a column of any of PostgreSQL's integer types.
func integer(v []byte) int64 {
	switch len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v)))
	default:
		return 0
	}
}

// escaped marks a text in hexadecimal. It is a character of nobody's alphabet.
const escaped = "\uf8ff"

// escape is a text that PostgreSQL can hold: it takes neither the byte 0 nor
// what is not UTF-8, and clients choose names and models. Two texts never become
// the same one.
func escape(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, escaped) {
		return s
	}
	return escaped + hex.EncodeToString([]byte(s))
}

// text reads what escape wrote.
func text[T string | []byte](v T) string {
	s := string(v)
	coded, ok := strings.CutPrefix(s, escaped)
	if !ok {
		return s
	}
	plain, err := hex.DecodeString(coded)
	if err != nil {
		return s
	}
	return string(plain)
}
