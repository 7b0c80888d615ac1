// SPDX-License-Identifier: Apache-2.0

package ledger

import "fmt"

// Keeps tells which operations a spool can keep: those that end a reservation
// and are charged nowhere else (RES-8). A sweep is found again by itself.
func (v Verb) Keeps() bool { return v == Settle || v == Void || v == Undo }

// Encode packs a settlement, void or undo with all that applying it takes, for
// a spool. Other verbs have fields that it leaves out.
func (op *Op) Encode() []byte {
	e := encoder{b: append(make([]byte, 0, 2048), codecVersion)}
	e.byte(byte(op.Verb))
	e.b = append(e.b, op.ID[:]...)
	e.strings(op.Workspace, op.Process)
	e.int(op.HoldMicros)
	e.bool(op.Again)
	r := op.Reservation
	e.bool(r != nil)
	if r != nil {
		e.b = append(e.b, r.ID[:]...)
		e.ints(r.ExpiresAt, r.EndedAt)
		e.bytes(r.Encode())
	}
	s := op.Settlement
	e.bool(s != nil)
	if s != nil {
		e.string(s.Outcome)
		e.bytes(s.Note)
		e.uint(uint64(len(s.Attempts)))
		for i := range s.Attempts {
			a := &s.Attempts[i]
			e.strings(a.Model, a.Provider, a.Price)
			e.ints(a.Spend, a.Tokens, a.Input, a.Uncached)
			e.bool(a.Estimated)
			e.bytes(a.Detail)
		}
	}
	return e.b
}

// DecodeOp reads what Encode packed. Its Reservation has the workspace of the
// operation.
func DecodeOp(b []byte) (*Op, error) {
	d, err := open(b, "operation")
	if err != nil {
		return nil, err
	}
	op := &Op{Verb: Verb(d.byte())}
	if !op.Verb.Keeps() {
		return nil, fmt.Errorf("read operation: verb %d: %w", op.Verb, errBody)
	}
	d.id(&op.ID)
	d.strings(&op.Workspace, &op.Process)
	op.HoldMicros, op.Again = d.int(), d.bool()
	if d.bool() {
		var id ID
		d.id(&id)
		expiresAt, endedAt, body := d.int(), d.int(), d.bytes()
		if op.Reservation, err = DecodeReservation(id, op.Workspace, expiresAt, body); err != nil {
			return nil, fmt.Errorf("read operation: %w", err)
		}
		op.Reservation.EndedAt = endedAt // of one that the book has answered with after its sweep
	}
	if d.bool() {
		op.Settlement = d.settlement()
	}
	return op, d.end("operation")
}

func (d *decoder) id(id *ID) {
	if len(d.b) < len(id) {
		d.bad, d.b = true, nil
		return
	}
	d.b = d.b[copy(id[:], d.b):]
}

func (d *decoder) settlement() *Settlement {
	s := &Settlement{Outcome: d.string(), Note: d.bytes()}
	for range d.count() {
		var a Attempt
		d.strings(&a.Model, &a.Provider, &a.Price)
		d.ints(&a.Spend, &a.Tokens, &a.Input, &a.Uncached)
		a.Estimated = d.bool()
		a.Detail = d.bytes()
		s.Attempts = append(s.Attempts, a)
		if d.bad {
			break
		}
	}
	return s
}
