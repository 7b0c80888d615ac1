// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// batch is what one batch did: one row of the journal, and in memory until it
// is folded into the other tables (ADR 0007). Bodies are as ledger packs them.
type batch struct {
	seq int64
	// puts are reservations as they are after the batch, ended those that are
	// open no more. Who was opened and ended within the batch stands in both.
	puts     []put
	ended    []ledger.ID
	counters []counterBody
	events   []eventBody
	calls    []callBody
	quarters []ledger.QuarterSum
	notices  []ledger.Notice
}

type put struct {
	*ledger.Reservation
	body []byte
}

type counterBody struct {
	counter ledger.Counter
	state   *ledger.State
	body    []byte
}

type eventBody struct {
	*ledger.Event
	body []byte
}

// callBody is an ended request; its body is end and, behind it, what the last of
// its puts packed.
type callBody struct {
	*ledger.Call
	end []byte
	put put
}

// rows is about how many rows of tables the batch changes.
func (b *batch) rows() int {
	return len(b.puts) + len(b.ended) + len(b.counters) + len(b.events) + 2*len(b.calls) + len(b.quarters)
}

// journalVersion is the first byte of a row. A reader refuses another one.
const journalVersion = 1

// errJournal: what a batch did cannot be read any more.
var errJournal = fmt.Errorf("it is cut or of another version: %w", store.ErrDamaged)

// packer writes a row: varints and bytes with their length in front.
type packer struct {
	b         []byte
	workspace string // written last: it is not repeated
	bodies    []span // of counters, events, calls
	body      []byte // of a reservation
}

type span struct{ from, to int }

// keepPacker bounds the memory that is kept for the next batch.
const keepPacker = 1 << 20

func (p *packer) int(v int64)     { p.b = binary.AppendVarint(p.b, v) }
func (p *packer) count(n int)     { p.b = binary.AppendUvarint(p.b, uint64(n)) }
func (p *packer) string(s string) { p.count(len(s)); p.b = append(p.b, s...) }
func (p *packer) bytes(s []byte)  { p.count(len(s)); p.b = append(p.b, s...) }

func (p *packer) place(workspace string) {
	if workspace == p.workspace {
		p.count(0)
		return
	}
	p.workspace = workspace
	p.string(workspace)
}

// begin leaves room for the length of what follows, which end fills in.
func (p *packer) begin() (mark int) {
	p.b = append(p.b, 0, 0, 0, 0)
	return len(p.b)
}

func (p *packer) end(mark int) {
	p.bodies = append(p.bodies, span{mark, len(p.b)})
	binary.LittleEndian.PutUint32(p.b[mark-4:], uint32(len(p.b)-mark))
}

// put packs a reservation as it is now.
func (p *packer) put(r *ledger.Reservation) put {
	p.body = r.AppendTo(p.body[:0])
	return put{r, bytes.Clone(p.body)}
}

// pack returns the batch's row and gives the bodies that are packed here to the
// batch. They share the row's memory.
func (p *packer) pack(b *batch) []byte {
	p.write(b)
	row := bytes.Clone(p.b)
	for i := range b.counters {
		b.counters[i].body = row[p.bodies[i].from:p.bodies[i].to]
	}
	rest := p.bodies[len(b.counters):]
	for i := range b.events {
		b.events[i].body = row[rest[i].from:rest[i].to]
	}
	rest = rest[len(b.events):]
	for i := range b.calls {
		b.calls[i].end = row[rest[i].from:rest[i].to]
	}
	if cap(p.b) > keepPacker {
		*p = packer{}
	}
	return row
}

func (p *packer) write(b *batch) {
	p.b, p.bodies, p.workspace = append(p.b[:0], journalVersion), p.bodies[:0], ""
	p.count(len(b.puts))
	for i := range b.puts {
		r := &b.puts[i]
		p.place(r.Workspace)
		p.b = append(p.b, r.ID[:]...)
		p.int(r.ExpiresAt)
		p.bytes(r.body)
	}
	p.count(len(b.ended))
	for i := range b.ended {
		p.b = append(p.b, b.ended[i][:]...)
	}
	p.counters(b.counters)
	p.events(b.events)
	p.count(len(b.calls))
	for i := range b.calls {
		c := &b.calls[i]
		p.b = append(p.b, c.ID[:]...)
		p.string(c.Outcome)
		p.int(c.EndedAt)
		mark := p.begin()
		p.b = c.AppendEnd(p.b, c.put.Reservation)
		p.end(mark)
	}
	p.count(len(b.quarters))
	for i := range b.quarters {
		q := &b.quarters[i]
		p.place(q.Workspace)
		p.string(q.Key)
		p.int(q.Quarter)
		p.int(q.Spend)
		p.int(q.Tokens)
		p.int(q.Requests)
	}
	p.count(len(b.notices))
	for i := range b.notices {
		mark := p.begin()
		p.b = ledger.AppendNotice(p.b, &b.notices[i])
		p.end(mark)
	}
}

func (p *packer) counters(list []counterBody) {
	p.count(len(list))
	for i := range list {
		c, s := &list[i].counter, list[i].state
		p.place(c.Workspace)
		p.string(c.Limit)
		p.count(int(c.Epoch))
		p.string(c.Subject)
		p.int(c.Window)
		p.int(s.Held)
		p.int(s.At)
		mark := p.begin()
		p.b = s.AppendTo(p.b)
		p.end(mark)
	}
}

func (p *packer) events(list []eventBody) {
	p.count(len(list))
	for i := range list {
		e := list[i].Event
		p.place(e.Workspace)
		p.b = append(p.b, e.ID[:]...)
		p.int(int64(e.Attempt))
		p.count(int(e.Kind))
		p.int(e.AdmittedAt)
		mark := p.begin()
		p.b = e.AppendTo(p.b)
		p.end(mark)
	}
}
