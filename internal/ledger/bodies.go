// SPDX-License-Identifier: Apache-2.0

package ledger

// Encode packs a reservation, without its id, workspace and expiry, which its
// row holds in columns.
func (r *Reservation) Encode() []byte { return r.AppendTo(make([]byte, 0, 1024)) }

// AppendTo is Encode behind what b holds already.
func (r *Reservation) AppendTo(b []byte) []byte {
	e := behind(b)
	e.strings(r.Process, r.Model, r.Provider, r.Price, r.ClientID)
	e.ints(r.At, int64(r.Place), r.Generation, int64(r.Candidate))
	e.bool(r.Tombstone)
	e.bool(r.SlotsFreed)
	e.subjects(r.Subjects)
	e.amounts(r.Worst)
	e.checks(r.Checks)
	e.holds(r.Holds, r.Checks)
	e.flows(r.Flows)
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
	r.Checks = d.checks(workspace)
	r.Holds, r.Flows = d.holds(workspace, r.Checks), d.flows()
	r.Note = d.bytes()
	return r, d.end("reservation")
}

// Encode packs an event, without what it is found by: ID, Workspace, Attempt, Kind
// and AdmittedAt.
func (v *Event) Encode() []byte { return v.AppendTo(make([]byte, 0, 256)) }

// AppendTo is Encode behind what b holds already.
func (v *Event) AppendTo(b []byte) []byte {
	e := behind(b)
	e.ints(v.At, int64(v.Place), v.Spend, v.Tokens)
	e.subjects(v.Subjects)
	e.strings(v.Model, v.Provider, v.Price, v.Reason, v.Actor)
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
	var place int64
	d.ints(&v.At, &place, &v.Spend, &v.Tokens)
	v.Place, v.Subjects = int32(place), d.subjects()
	d.strings(&v.Model, &v.Provider, &v.Price, &v.Reason, &v.Actor)
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
	r := c.Reservation()
	return r.AppendTo(c.AppendEnd(make([]byte, 0, 1024), r))
}

// AppendEnd packs, behind what b holds already, what the call's end has added to
// its reservation. The reservation, packed as it was before, makes it a whole
// body: nobody need pack it again.
func (c *Call) AppendEnd(b []byte, r *Reservation) []byte {
	e := behind(b)
	e.ints(c.Spend, c.Tokens)
	e.bytes(c.End)
	e.flows(c.Flows[len(r.Flows):])
	return e.b
}

// DecodeInto reads what Encode packed. ID, Workspace and the columns that belong
// to the end must be set already: Key, Outcome, Code and EndedAt.
func (c *Call) DecodeInto(b []byte) error {
	d, err := open(b, "call")
	if err != nil {
		return err
	}
	d.ints(&c.Spend, &c.Tokens)
	c.End = d.bytes()
	flows := d.flows()
	if d.bad {
		return d.end("call")
	}
	r, err := DecodeReservation(c.ID, c.Workspace, 0, d.b)
	if err != nil {
		return err
	}
	c.At, c.Place, c.Generation, c.Subjects, c.Worst = r.At, r.Place, r.Generation, r.Subjects, r.Worst
	c.Model, c.Provider, c.Price, c.ClientID = r.Model, r.Provider, r.Price, r.ClientID
	c.Checks, c.Holds, c.Flows, c.Note = r.Checks, r.Holds, append(r.Flows, flows...), r.Note
	return nil
}
