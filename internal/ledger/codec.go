// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/window"
)

// The bodies that books store are packed: varints and length-prefixed bytes,
// the first byte a version. A reader of an unknown version refuses; a field is
// only ever added behind a new version.
const codecVersion = 2

// maxList bounds every list that a body may claim to hold.
const maxList = 4096

var errBody = errors.New("ledger: body is cut or damaged")

type encoder struct{ b []byte }

func (e *encoder) int(v int64)     { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) uint(v uint64)   { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) string(s string) { e.uint(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) bytes(s []byte)  { e.uint(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) byte(v byte)     { e.b = append(e.b, v) }
func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) strings(list ...string) {
	for _, s := range list {
		e.string(s)
	}
}

func (e *encoder) ints(list ...int64) {
	for _, v := range list {
		e.int(v)
	}
}

// decoder reads what encoder wrote; the first fault sticks and every later
// read returns zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	if n == 0 {
		return nil
	}
	out := append([]byte(nil), d.b[:n]...)
	d.b = d.b[n:]
	return out
}

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	out := string(d.b[:n])
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool { return d.byte() == 1 }

func (d *decoder) count() int {
	n := d.uint()
	if n > maxList || n > uint64(len(d.b)) { // an element has at least one byte
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) strings(out ...*string) {
	for _, p := range out {
		*p = d.string()
	}
}

func (d *decoder) ints(out ...*int64) {
	for _, p := range out {
		*p = d.int()
	}
}

func (d *decoder) end(what string) error {
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("read %s: %w", what, errBody)
	}
	return nil
}

func open(b []byte, what string) (*decoder, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, fmt.Errorf("read %s: %w", what, errBody)
	}
	return &decoder{b: b[1:]}, nil
}

func behind(b []byte) encoder { return encoder{b: append(b, codecVersion)} }

// What a state's body says of its days.
const (
	daysNone = iota
	daysDated
	daysMoved
)

// Encode packs a state, without what counter rows hold in columns: held and at.
func (s *State) Encode() []byte { return s.AppendTo(make([]byte, 0, 16)) }

// AppendTo is Encode behind what b holds already.
func (s *State) AppendTo(b []byte) []byte {
	e := behind(b)
	e.byte(byte(s.Kind))
	e.uint(uint64(s.Warned))
	e.ints(s.Settled, s.Credits, s.Deficit, s.Rate, s.Returned, s.Seq)
	e.amended(s)
	e.sliding(s.Sliding)
	d := s.Days
	switch {
	case d == nil:
		e.byte(daysNone)
	case d.Moved:
		e.byte(daysMoved)
	default:
		e.byte(daysDated)
	}
	if d != nil {
		e.int(int64(d.Last))
		e.string(d.Zone)
		e.uint(uint64(d.ZoneEpoch))
		e.ints(d.Sums[:]...)
		e.late(d.Late)
	}
	return e.b
}

// DecodeInto reads what Encode packed.
func (s *State) DecodeInto(b []byte) error {
	d, err := open(b, "counter")
	if err != nil {
		return err
	}
	s.Kind, s.Warned = Kind(d.byte()), uint16(d.uint())
	d.ints(&s.Settled, &s.Credits, &s.Deficit, &s.Rate, &s.Returned, &s.Seq)
	d.amended(s)
	s.Days = nil
	s.Sliding = d.sliding()
	if kept := d.byte(); kept == daysDated || kept == daysMoved {
		s.Days = &Days{Moved: kept == daysMoved, Last: window.Day(d.int()), Zone: d.string(), ZoneEpoch: uint32(d.uint())}
		for i := range s.Days.Sums {
			s.Days.Sums[i] = d.int()
		}
		s.Days.Late = d.late()
	}
	return d.end("counter")
}

func (e *encoder) counter(c Counter) {
	e.string(c.Limit)
	e.uint(uint64(c.Epoch))
	e.string(c.Subject)
	e.int(c.Window)
}

func (d *decoder) counter(workspace string) Counter {
	return Counter{Workspace: workspace, Limit: d.string(), Epoch: uint32(d.uint()), Subject: d.string(), Window: d.int()}
}

func (e *encoder) subjects(s Subjects) {
	e.strings(s.Key, s.Plan, s.User, s.Team, s.Project)
	e.uint(uint64(len(s.Tags)))
	e.strings(s.Tags...)
}

func (d *decoder) subjects() Subjects {
	var s Subjects
	d.strings(&s.Key, &s.Plan, &s.User, &s.Team, &s.Project)
	for range d.count() {
		s.Tags = append(s.Tags, d.string())
		if d.bad {
			break
		}
	}
	return s
}

func (e *encoder) amounts(a Amounts) {
	e.ints(a.Spend, a.Tokens, a.Input, a.Requests, a.Slots, a.Uncached)
}

func (d *decoder) amounts() Amounts {
	var a Amounts
	d.ints(&a.Spend, &a.Tokens, &a.Input, &a.Requests, &a.Slots, &a.Uncached)
	return a
}

// holds names a counter by its check: the place of that from 1 on, or 0 and the
// counter itself where there is none.
func (e *encoder) holds(list []Hold, checks []CheckRecord) {
	e.uint(uint64(len(list)))
	next := 0
	for i := range list {
		h := &list[i]
		for next < len(checks) && checks[next].Counter != h.Counter {
			next++
		}
		if next < len(checks) {
			e.uint(uint64(next) + 1)
		} else {
			next = 0 // they stand in the checks' order, but for a move's
			e.uint(0)
			e.counter(h.Counter)
		}
		e.byte(byte(h.Kind))
		e.byte(byte(h.Wants))
		e.byte(byte(h.Charges))
		e.ints(h.Held, h.Taken, h.Limit, h.Level, h.At)
		e.strings(h.Model, h.Provider, h.Zone)
		e.uint(uint64(h.ZoneEpoch))
		e.warnings(h)
	}
}

func (d *decoder) holds(workspace string, checks []CheckRecord) []Hold {
	var list []Hold
	for range d.count() {
		h := Hold{Counter: d.holdCounter(workspace, checks), Kind: Kind(d.byte()), Wants: Metric(d.byte()), Charges: Metric(d.byte())}
		d.ints(&h.Held, &h.Taken, &h.Limit, &h.Level, &h.At)
		d.strings(&h.Model, &h.Provider, &h.Zone)
		h.ZoneEpoch = uint32(d.uint())
		d.warnings(&h)
		list = append(list, h)
		if d.bad {
			break
		}
	}
	return list
}

func (d *decoder) holdCounter(workspace string, checks []CheckRecord) Counter {
	check := d.uint()
	switch {
	case check == 0:
		return d.counter(workspace)
	case check > uint64(len(checks)):
		d.bad, d.b = true, nil
		return Counter{}
	default:
		return checks[check-1].Counter
	}
}

func (e *encoder) checks(list []CheckRecord) {
	e.uint(uint64(len(list)))
	for i := range list {
		c := &list[i]
		e.counter(c.Counter)
		e.byte(byte(c.Kind))
		e.byte(byte(c.Mode))
		e.byte(byte(c.Wants))
		e.bool(c.Pass)
		e.strings(c.Code, c.Name, c.Scope, c.Origin)
		e.ints(c.Amount, c.Credit, c.Used, c.Held, c.Wanted, c.ResetsAt, int64(c.Span))
	}
}

func (d *decoder) checks(workspace string) []CheckRecord {
	var list []CheckRecord
	for range d.count() {
		c := CheckRecord{Counter: d.counter(workspace), Kind: Kind(d.byte()), Mode: Mode(d.byte()), Wants: Metric(d.byte()), Pass: d.bool()}
		d.strings(&c.Code, &c.Name, &c.Scope, &c.Origin)
		var span int64
		d.ints(&c.Amount, &c.Credit, &c.Used, &c.Held, &c.Wanted, &c.ResetsAt, &span)
		c.Span = int32(span)
		list = append(list, c)
		if d.bad {
			break
		}
	}
	return list
}
