// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
)

// unpacker reads what packer wrote; the first fault sticks.
type unpacker struct {
	b         []byte
	bad       bool
	workspace string
}

func (u *unpacker) fail() { u.bad, u.b = true, nil }

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

// count is a length, or a number of items that have at least a byte each.
func (u *unpacker) count() int {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return 0
	}
	return int(n)
}

// take is the next n bytes; they share the row's memory.
func (u *unpacker) take(n int) []byte {
	if n > len(u.b) {
		u.fail()
		return nil
	}
	out := u.b[:n:n]
	u.b = u.b[n:]
	return out
}

func (u *unpacker) bytes() []byte  { return u.take(u.count()) }
func (u *unpacker) string() string { return string(u.bytes()) }

func (u *unpacker) id() (id ledger.ID) {
	copy(id[:], u.take(len(id)))
	return id
}

func (u *unpacker) place() string {
	if w := u.string(); w != "" {
		u.workspace = w
	}
	return u.workspace
}

func (u *unpacker) body() []byte {
	length := u.take(4)
	if length == nil {
		return nil
	}
	return u.take(int(binary.LittleEndian.Uint32(length)))
}

// each calls read as often as a count says.
func (u *unpacker) each(read func()) {
	for n := u.count(); n > 0 && !u.bad; n-- {
		read()
	}
}

// unpack reads a row. open finds the reservation of a call: the last put of it,
// in this row or before.
func unpack(seq int64, row []byte, open func(*batch, ledger.ID) (put, bool)) (*batch, error) {
	b := &batch{seq: seq}
	if len(row) == 0 || row[0] != journalVersion {
		return nil, fmt.Errorf("row %d of the journal: %w", seq, errJournal)
	}
	u := &unpacker{b: row[1:]}
	var failed error
	u.each(func() {
		workspace, id, expiresAt, body := u.place(), u.id(), u.int(), bytes.Clone(u.bytes())
		r, err := ledger.DecodeReservation(id, workspace, expiresAt, body)
		b.puts, failed = append(b.puts, put{r, body}), errors.Join(failed, err)
	})
	u.each(func() { b.ended = append(b.ended, u.id()) })
	u.each(func() { b.counters = append(b.counters, u.counter()) })
	u.each(func() { b.events = append(b.events, u.event()) })
	u.each(func() {
		c := &ledger.Call{ID: u.id(), Outcome: u.string(), EndedAt: u.int()}
		end := u.body()
		r, ok := open(b, c.ID)
		if !ok {
			failed = errors.Join(failed, fmt.Errorf("call %s has no reservation: %w", c.ID, errJournal))
			return
		}
		c.Workspace, c.Key, c.ClientID = r.Workspace, r.Subjects.Key, r.ClientID
		b.calls = append(b.calls, callBody{c, end, r})
	})
	u.each(func() {
		b.quarters = append(b.quarters, ledger.QuarterSum{
			Workspace: u.place(), Key: u.string(), Quarter: u.int(), Spend: u.int(), Tokens: u.int(), Requests: u.int(),
		})
	})
	u.each(func() {
		n, err := ledger.DecodeNotice(u.body())
		b.notices, failed = append(b.notices, n), errors.Join(failed, err)
	})
	if u.bad || len(u.b) > 0 {
		failed = errors.Join(failed, errJournal)
	}
	if failed != nil {
		return nil, fmt.Errorf("row %d of the journal: %w", seq, failed)
	}
	return b, nil
}

func (u *unpacker) counter() counterBody {
	c := counterBody{counter: ledger.Counter{
		Workspace: u.place(), Limit: u.string(), Epoch: uint32(u.uint()), Subject: u.string(), Window: u.int(),
	}}
	c.state = &ledger.State{Held: u.int(), At: u.int()}
	c.body = u.body()
	return c
}

func (u *unpacker) event() eventBody {
	e := &ledger.Event{
		Workspace: u.place(), ID: u.id(), Attempt: int32(u.int()), Kind: ledger.EventKind(u.uint()), AdmittedAt: u.int(),
	}
	return eventBody{e, u.body()}
}
