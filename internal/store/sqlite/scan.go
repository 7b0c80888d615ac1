// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

func scanObject(r row) (store.Object, error) {
	var o store.Object
	err := r.Scan(&o.Workspace, &o.Kind, &o.ID, &o.Name, &o.Version, &o.Generation, &o.Epoch, &o.Body,
		&o.Source, &o.Origin, &o.CreatedAt, &o.UpdatedAt, &o.RetiredAt)
	if err != nil {
		return store.Object{}, known(err)
	}
	return o, nil
}

func scanAudit(r row) (store.Audit, error) {
	var a store.Audit
	err := r.Scan(&a.Seq, &a.Workspace, &a.At, &a.Actor, &a.Action, &a.Kind, &a.ID, &a.Name, &a.Before, &a.After)
	if err != nil {
		return store.Audit{}, known(err)
	}
	return a, nil
}

func scanEvent(r row) (ledger.Event, error) {
	var e ledger.Event
	var id, body []byte
	err := r.Scan(&e.Workspace, &id, &e.Attempt, &e.Kind, &e.AdmittedAt, &body)
	if err != nil {
		return ledger.Event{}, known(err)
	}
	copy(e.ID[:], id)
	return e, e.DecodeInto(body)
}

func scanCall(r row) (store.Call, error) {
	c := store.Call{}
	var id, body []byte
	err := r.Scan(&c.Workspace, &id, &c.Key, &c.Outcome, &c.Code, &c.EndedAt, &c.ClientID, &c.Count, &body)
	if err != nil {
		return store.Call{}, known(err)
	}
	copy(c.ID[:], id)
	return c, c.DecodeInto(body)
}

func scanReservation(r row) (*ledger.Reservation, error) {
	var workspace string
	var id ledger.ID
	var raw, body []byte
	var expiresAt, number int64
	if err := r.Scan(&workspace, &raw, &expiresAt, &body, &number); err != nil {
		return nil, known(err)
	}
	copy(id[:], raw)
	return ledger.DecodeReservation(id, workspace, expiresAt, body)
}

// counterRow is one row of table counters.
type counterRow struct {
	counter ledger.Counter
	state   ledger.State
}

func scanCounter(r row) (counterRow, error) {
	var out counterRow
	var body []byte
	c, s := &out.counter, &out.state
	err := r.Scan(&c.Workspace, &c.Limit, &c.Epoch, &c.Subject, &c.Window, &s.Held, &s.At, &body)
	if err != nil {
		return out, known(err)
	}
	return out, s.DecodeInto(body)
}

func scanQuarter(r row) (ledger.QuarterSum, error) {
	var q ledger.QuarterSum
	err := r.Scan(&q.Workspace, &q.Key, &q.Quarter, &q.Spend, &q.Tokens, &q.Requests)
	if err != nil {
		return q, known(err)
	}
	return q, nil
}

func scanClosing(r row) (store.Closing, error) {
	var c store.Closing
	k := &c.Counter
	err := r.Scan(&k.Workspace, &k.Limit, &k.Epoch, &k.Subject, &k.Window, &c.Day, &c.Credit, &c.Kind, &c.Amount)
	if err != nil {
		return c, known(err)
	}
	return c, nil
}

func scanNotice(r row) (ledger.Notice, error) {
	var body []byte
	if err := r.Scan(&body); err != nil {
		return ledger.Notice{}, known(err)
	}
	return ledger.DecodeNotice(body)
}
