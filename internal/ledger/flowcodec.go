// SPDX-License-Identifier: Apache-2.0

package ledger

// Instants and slots are packed as differences: they are near each other.

func (e *encoder) sliding(w *Sliding) {
	e.bool(w != nil)
	if w == nil {
		return
	}
	e.ints(w.Length, w.Restarts)
	e.bool(w.Exact)
	e.uint(uint64(len(w.Marks)))
	last := int64(0)
	for _, m := range w.Marks {
		e.ints(m.Slot-last, m.Units)
		last = m.Slot
	}
}

func (d *decoder) sliding() *Sliding {
	if !d.bool() {
		return nil
	}
	w := &Sliding{}
	d.ints(&w.Length, &w.Restarts)
	w.Exact = d.bool()
	last := int64(0)
	for range d.count() {
		m := Mark{Slot: last + d.int(), Units: d.int()}
		w.Marks = append(w.Marks, m)
		last = m.Slot
		if d.bad {
			break
		}
	}
	return w
}

// flow packs one flow; from is an instant near its own.
func (e *encoder) flow(f *Flow, from int64) {
	e.ints(int64(f.Hold), f.Seq, f.At-from, f.Since-f.At, f.Of-f.Since, f.Limit, f.Length, f.Units, f.Level, f.Returned)
	e.bool(f.Exact)
}

func (d *decoder) flow(from int64) Flow {
	var f Flow
	var hold int64
	d.ints(&hold, &f.Seq, &f.At, &f.Since, &f.Of, &f.Limit, &f.Length, &f.Units, &f.Level, &f.Returned)
	f.Hold, f.Exact = int32(hold), d.bool()
	f.At += from
	f.Since += f.At
	f.Of += f.Since
	return f
}

func (e *encoder) flows(list []Flow) {
	e.uint(uint64(len(list)))
	from := int64(0)
	for i := range list {
		e.flow(&list[i], from)
		from = list[i].At
	}
}

func (d *decoder) flows() []Flow {
	var list []Flow
	from := int64(0)
	for range d.count() {
		list = append(list, d.flow(from))
		from = list[len(list)-1].At
		if d.bad {
			break
		}
	}
	return list
}
