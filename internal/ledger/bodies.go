// SPDX-License-Identifier: Apache-2.0

package ledger

// Encode packs a reservation, without its id, workspace and expiry, which its
// row holds in columns.
func (r *Reservation) Encode() []byte {
	e := start(1536)
	e.strings(r.Process, r.Model, r.Provider, r.Price, r.ClientID)
	e.ints(r.At, int64(r.Place), r.Generation, int64(r.Candidate))
	e.bool(r.Tombstone)
	e.bool(r.SlotsFreed)
	e.subjects(r.Subjects)
	e.amounts(r.Worst)
	e.holds(r.Holds)
	e.flows(r.Flows)
	e.checks(r.Checks)
	e.bytes(r.Note)
	return e.b
}

// DecodeReservation reads what Encode packed, with the row's columns.
func DecodeReservation(id ID, workspace string, expiresAt int64, b []byte) (*Reservation, error) {
	d, err := open(b, "reservation")
	if err != nil {
		return nil, err
	}
	r := &Reservation{ID: id, Workspace: workspace, ExpiresAt: expiresAt}
	d.strings(&r.Process, &r.Model, &r.Provider, &r.Price, &r.ClientID)
	var place, candidate int64
	d.ints(&r.At, &place, &r.Generation, &candidate)
	r.Place, r.Candidate = int32(place), int32(candidate)
	r.Tombstone, r.SlotsFreed = d.bool(), d.bool()
	r.Subjects, r.Worst = d.subjects(), d.amounts()
	r.Holds, r.Flows, r.Checks = d.holds(workspace), d.flows(), d.checks(workspace)
	r.Note = d.bytes()
	return r, d.end("reservation")
}

// Encode packs an event, without the columns that reports select by.
func (v *Event) Encode() []byte {
	e := start(128)
	e.int(int64(v.Place))
	e.subjects(v.Subjects)
	e.strings(v.Provider, v.Price, v.Reason, v.Actor)
	e.bytes(v.Detail)
	e.uint(uint64(len(v.Charges)))
	for i := range v.Charges {
		e.charge(&v.Charges[i])
	}
	e.uint(uint64(len(v.Flows)))
	for i := range v.Flows {
		e.counter(v.Flows[i].Counter)
		e.byte(byte(v.Flows[i].Kind))
		e.flow(&v.Flows[i].Flow, 0)
	}
	return e.b
}

// DecodeInto reads what Encode packed; Workspace must be set already.
func (v *Event) DecodeInto(b []byte) error {
	d, err := open(b, "event")
	if err != nil {
		return err
	}
	v.Place = int32(d.int())
	v.Subjects = d.subjects()
	d.strings(&v.Provider, &v.Price, &v.Reason, &v.Actor)
	v.Detail = d.bytes()
	v.Charges = nil
	for range d.count() {
		v.Charges = append(v.Charges, d.charge(v.Workspace))
		if d.bad {
			break
		}
	}
	v.Flows = nil
	for range d.count() {
		v.Flows = append(v.Flows, CounterFlow{Counter: d.counter(v.Workspace), Kind: Kind(d.byte()), Flow: d.flow(0)})
		if d.bad {
			break
		}
	}
	return d.end("event")
}

// Encode packs a call, without the columns that the call log is searched by.
func (c *Call) Encode() []byte {
	e := start(2048)
	e.ints(int64(c.Place), c.Generation, c.Spend, c.Tokens)
	e.strings(c.Provider, c.Price)
	e.subjects(c.Subjects)
	e.amounts(c.Worst)
	e.checks(c.Checks)
	e.holds(c.Holds)
	e.flows(c.Flows)
	e.bytes(c.Note)
	e.bytes(c.End)
	return e.b
}

// DecodeInto reads what Encode packed; Workspace must be set already.
func (c *Call) DecodeInto(b []byte) error {
	d, err := open(b, "call")
	if err != nil {
		return err
	}
	var place int64
	d.ints(&place, &c.Generation, &c.Spend, &c.Tokens)
	c.Place = int32(place)
	d.strings(&c.Provider, &c.Price)
	c.Subjects, c.Worst = d.subjects(), d.amounts()
	c.Checks, c.Holds, c.Flows = d.checks(c.Workspace), d.holds(c.Workspace), d.flows()
	c.Note, c.End = d.bytes(), d.bytes()
	return d.end("call")
}
