// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// decodeState reads kind, settled, held, warned, at and state.
func decodeState(v [][]byte) (row, error) {
	r := row{raw: bytes.Clone(v[5])}
	kind := ledger.Kind(integer(v[0]))
	if kind == 0 {
		return r, nil
	}
	r.state = &ledger.State{Kind: kind, Settled: integer(v[1]), Held: integer(v[2]), Warned: uint16(integer(v[3])), At: integer(v[4])}
	return r, r.state.DecodeInto(r.raw)
}

// decodeCall reads callColumns.
func decodeCall(v [][]byte) (*store.Call, error) {
	c := &store.Call{Count: integer(v[9]), Call: ledger.Call{
		Workspace: text(v[0]), Key: text(v[2]), Outcome: text(v[3]), Code: text(v[4]), At: integer(v[5]), EndedAt: integer(v[6]),
		Model: text(v[7]), ClientID: text(v[8]),
	}}
	copy(c.ID[:], v[1])
	return c, c.DecodeInto(v[10])
}

// scanner is what pgx.Row and pgx.Rows share.
type scanner interface{ Scan(into ...any) error }

func collect[T any](rows pgx.Rows, scan func(scanner) (T, error)) ([]T, error) {
	var list []T
	err := each(rows, scan, func(v *T) error {
		list = append(list, *v)
		return nil
	})
	return list, err
}

// each closes rows.
func each[T any](rows pgx.Rows, scan func(scanner) (T, error), fn func(*T) error) error {
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return err
		}
		if err := fn(&v); err != nil {
			return err
		}
	}
	return known(rows.Err())
}

// plain takes the escapes out of texts.
func plain(list ...*string) {
	for _, s := range list {
		*s = text(*s)
	}
}

func scanObject(r scanner) (store.Object, error) {
	var o store.Object
	var epoch int64
	err := r.Scan(&o.Workspace, &o.Kind, &o.ID, &o.Name, &o.Version, &o.Generation, &epoch, &o.Body,
		&o.Source, &o.Origin, &o.CreatedAt, &o.UpdatedAt, &o.RetiredAt)
	if err != nil {
		return store.Object{}, known(err)
	}
	o.Epoch = uint32(epoch)
	plain(&o.Workspace, &o.Kind, &o.ID, &o.Name, &o.Source, &o.Origin)
	return o, nil
}

func scanAudit(r scanner) (store.Audit, error) {
	var a store.Audit
	err := r.Scan(&a.Seq, &a.Workspace, &a.At, &a.Actor, &a.Action, &a.Kind, &a.ID, &a.Name, &a.Before, &a.After)
	if err != nil {
		return store.Audit{}, known(err)
	}
	plain(&a.Workspace, &a.Actor, &a.Action, &a.Kind, &a.ID, &a.Name)
	return a, nil
}

func scanEvent(r scanner) (ledger.Event, error) {
	var e ledger.Event
	var id [16]byte
	var kind int16
	var body []byte
	var key string
	err := r.Scan(&e.Workspace, &id, &e.Attempt, &kind, &e.At, &e.AdmittedAt, &key, &e.Model, &e.Spend, &e.Tokens, &body)
	if err != nil {
		return ledger.Event{}, known(err)
	}
	e.ID, e.Kind = id, ledger.EventKind(kind)
	plain(&e.Workspace, &e.Model)
	return e, e.DecodeInto(body)
}

func scanCall(r scanner) (store.Call, error) {
	c := store.Call{}
	var id [16]byte
	var body []byte
	err := r.Scan(&c.Workspace, &id, &c.Key, &c.Outcome, &c.Code, &c.At, &c.EndedAt, &c.Model, &c.ClientID, &c.Count, &body)
	if err != nil {
		return store.Call{}, known(err)
	}
	c.ID = id
	plain(&c.Workspace, &c.Key, &c.Outcome, &c.Code, &c.Model, &c.ClientID)
	return c, c.DecodeInto(body)
}

func scanReservation(r scanner) (*ledger.Reservation, error) {
	var workspace string
	var id [16]byte
	var body []byte
	var expiresAt int64
	if err := r.Scan(&workspace, &id, &expiresAt, &body); err != nil {
		return nil, known(err)
	}
	return ledger.DecodeReservation(id, text(workspace), expiresAt, body)
}

// counterRow is one row of table counters.
type counterRow struct {
	counter ledger.Counter
	state   ledger.State
}

func scanCounter(r scanner) (counterRow, error) {
	var out counterRow
	var body []byte
	var epoch, warned int64
	var kind int16
	c, s := &out.counter, &out.state
	err := r.Scan(&c.Workspace, &c.Limit, &epoch, &c.Subject, &c.Window, &kind, &s.Settled, &s.Held, &warned, &s.At, &body)
	if err != nil {
		return out, known(err)
	}
	c.Epoch, s.Kind, s.Warned = uint32(epoch), ledger.Kind(kind), uint16(warned)
	plain(&c.Workspace, &c.Limit, &c.Subject)
	return out, s.DecodeInto(body)
}

func scanQuarter(r scanner) (ledger.QuarterSum, error) {
	var q ledger.QuarterSum
	if err := r.Scan(&q.Workspace, &q.Key, &q.Quarter, &q.Spend, &q.Tokens, &q.Requests); err != nil {
		return q, known(err)
	}
	plain(&q.Workspace, &q.Key)
	return q, nil
}

func scanClosing(r scanner) (store.Closing, error) {
	var c store.Closing
	var epoch int64
	var kind int16
	k := &c.Counter
	err := r.Scan(&k.Workspace, &k.Limit, &epoch, &k.Subject, &k.Window, &c.Day, &c.Credit, &kind, &c.Amount)
	if err != nil {
		return c, known(err)
	}
	k.Epoch, c.Kind = uint32(epoch), ledger.Kind(kind)
	plain(&k.Workspace, &k.Limit, &k.Subject)
	return c, nil
}

func scanNotice(r scanner) (ledger.Notice, error) {
	var body []byte
	if err := r.Scan(&body); err != nil {
		return ledger.Notice{}, known(err)
	}
	return ledger.DecodeNotice(body)
}
