// SPDX-License-Identifier: Apache-2.0

package ledger

// What a state's flags say.
const (
	stateSaturated = 1 << iota
	stateAmended
)

// amended packs a state's flags, and what an entry has changed where one has.
func (e *encoder) amended(s *State) {
	var flags byte
	if s.Saturated {
		flags |= stateSaturated
	}
	if s.Raised == 0 && s.ResetAt == 0 {
		e.byte(flags)
		return
	}
	e.byte(flags | stateAmended)
	e.ints(s.Raised, s.ResetAt)
}

func (d *decoder) amended(s *State) {
	flags := d.byte()
	s.Saturated, s.Raised, s.ResetAt = flags&stateSaturated != 0, 0, 0
	if flags&stateAmended != 0 {
		d.ints(&s.Raised, &s.ResetAt)
	}
}

// What a charge's flags say.
const (
	chargeCredit = 1 << iota
	chargeRaise
	chargeDated
)

func (e *encoder) charge(c *Charge) {
	e.counter(c.Counter)
	e.byte(byte(c.Kind))
	var flags byte
	if c.Credit {
		flags |= chargeCredit
	}
	if c.Raise {
		flags |= chargeRaise
	}
	if c.At != 0 {
		flags |= chargeDated
	}
	e.byte(flags)
	e.int(c.Amount)
	if c.At != 0 {
		e.int(c.At)
	}
}

func (d *decoder) charge(workspace string) Charge {
	c := Charge{Counter: d.counter(workspace), Kind: Kind(d.byte())}
	flags := d.byte()
	c.Credit, c.Raise, c.Amount = flags&chargeCredit != 0, flags&chargeRaise != 0, d.int()
	if flags&chargeDated != 0 {
		c.At = d.int()
	}
	return c
}

// What a hold's flags say.
const (
	holdSkips = 1 << iota
	holdSkipped
	holdAlarm
	holdSoft
)

// warnings packs what a hold remembers of its check for the end: one byte where
// there is nothing.
func (e *encoder) warnings(h *Hold) {
	var flags byte
	if h.SkipMissing {
		flags |= holdSkips
	}
	if h.Skipped {
		flags |= holdSkipped
	}
	a := h.Alarm
	if a == nil {
		e.byte(flags)
		return
	}
	if a.Soft {
		flags |= holdSoft
	}
	e.byte(flags | holdAlarm)
	e.strings(a.Name, a.Scope)
	e.int(a.Amount)
	e.bytes(a.Percents)
}

func (d *decoder) warnings(h *Hold) {
	flags := d.byte()
	h.SkipMissing, h.Skipped = flags&holdSkips != 0, flags&holdSkipped != 0
	if flags&holdAlarm != 0 {
		h.Alarm = &Alarm{Name: d.string(), Scope: d.string(), Amount: d.int(), Percents: d.bytes(), Soft: flags&holdSoft != 0}
	}
}

// AppendNotice packs a notice behind what b holds already, for an outbox row.
func AppendNotice(b []byte, n *Notice) []byte {
	e := encoder{b: append(b, codecVersion)}
	e.ints(n.At, int64(n.Place))
	e.strings(n.Workspace, n.Kind, n.Counter.Workspace)
	e.counter(n.Counter)
	e.strings(n.Name, n.Scope)
	e.byte(byte(n.Metric))
	e.string(n.Level)
	e.byte(n.Percent)
	e.ints(n.Amount, n.Used)
	return e.b
}

// DecodeNotice reads what AppendNotice packed.
func DecodeNotice(b []byte) (Notice, error) {
	var n Notice
	d, err := open(b, "notice")
	if err != nil {
		return n, err
	}
	var place int64
	d.ints(&n.At, &place)
	n.Place = int32(place)
	var workspace string
	d.strings(&n.Workspace, &n.Kind, &workspace)
	n.Counter = d.counter(workspace)
	d.strings(&n.Name, &n.Scope)
	n.Metric, n.Level, n.Percent = Metric(d.byte()), d.string(), d.byte()
	d.ints(&n.Amount, &n.Used)
	return n, d.end("notice")
}

func (e *encoder) late(list []LateSum) {
	e.uint(uint64(len(list)))
	for _, l := range list {
		e.ints(l.Quarter, l.Amount)
	}
}

func (d *decoder) late() []LateSum {
	var list []LateSum
	for range d.count() {
		list = append(list, LateSum{Quarter: d.int(), Amount: d.int()})
		if d.bad {
			break
		}
	}
	return list
}
