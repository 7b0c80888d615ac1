// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// callLog: a call is found by our id and by the client's, running ones too
// (ERR-4, ENGINE 14).
func callLog(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	running := s.open(t, d, 2*dollar)
	d.clock.Advance(time.Millisecond)
	settled := s.open(t, d, 2*dollar)
	d.clock.Advance(time.Millisecond)
	apply(t, d.store, s.settle(settled, dollar))
	s.budget, s.key = dollar, "key_2"
	over := s.admit(d, "m1", 3*dollar)
	over.ClientID = "client-2"
	apply(t, d.store, over)
	for _, c := range []struct {
		id           ledger.ID
		outcome, key string
		events       int
		spend        int64
	}{
		{running.ID, store.OutcomeRunning, "key_1", 0, 0},
		{settled.ID, "settled", "key_1", 1, dollar},
		{over.ID, "refused", "key_2", 0, 0},
	} {
		call, events, err := d.store.Call(t.Context(), "acme", c.id)
		if err != nil || call.Outcome != c.outcome || call.Key != c.key || call.Count != 1 || call.Spend != c.spend ||
			len(events) != c.events || len(call.Checks) == 0 || string(call.Note) != "note" || call.Worst.Spend == 0 ||
			call.Subjects.User != "ada" || call.ID != c.id || call.Model != "m1" {
			t.Errorf("%s: %+v, %d events, %v", c.outcome, call, len(events), err)
		}
		if _, _, err := d.store.Call(t.Context(), "other", c.id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s in another workspace: %v", c.outcome, err)
		}
	}
	if call, _, _ := d.store.Call(t.Context(), "acme", settled.ID); string(call.End) != "end" || !reflect.DeepEqual(call.Holds, settled.Holds) {
		t.Errorf("the settled call lacks its end or holds: %+v", call)
	}
	byClient, err := d.store.CallsByClientID(t.Context(), "acme", "client-1", 5)
	if err != nil || len(byClient) != 1 || byClient[0].ID != settled.ID {
		t.Errorf("by the client's id: %d, %v", len(byClient), err)
	}
	for _, q := range []struct {
		query store.CallQuery
		want  []ledger.ID
	}{
		{store.CallQuery{Limit: 10}, []ledger.ID{over.ID, settled.ID}},
		{store.CallQuery{Limit: 1}, []ledger.ID{over.ID}},
		{store.CallQuery{Limit: 10, Before: over.ID}, []ledger.ID{settled.ID}},
		{store.CallQuery{Limit: 10, Key: "key_1"}, []ledger.ID{settled.ID}},
		{store.CallQuery{Limit: 10, Outcome: "refused"}, []ledger.ID{over.ID}},
		{store.CallQuery{Limit: 10, Outcome: "refused", Key: "key_1"}, nil},
	} {
		list, err := d.store.Calls(t.Context(), "acme", q.query)
		var got []ledger.ID
		for i := range list {
			got = append(got, list[i].ID)
		}
		if err != nil || !reflect.DeepEqual(got, q.want) {
			t.Errorf("calls %+v: %v, %v, want %v", q.query, got, err, q.want)
		}
	}
}

// refusalRecords: a flood of refusals leaves a bounded number of records, and
// none uncounted (ENGINE 3).
func refusalRecords(t *testing.T, driver Driver) {
	const inFull, all = 200, 330
	d, s := driver.desk(t), newShop("acme")
	s.budget = dollar
	for range all / 10 {
		var ops []*ledger.Op
		for range 10 {
			ops = append(ops, s.admit(d, "m1", 2*dollar))
		}
		apply(t, d.store, ops...)
	}
	quiet := newShop("quiet")
	quiet.budget = 0
	apply(t, d.store, quiet.admit(d, "m1", dollar))
	list, err := d.store.Calls(t.Context(), "acme", store.CallQuery{Limit: 2 * all})
	if err != nil || len(list) != inFull+1 {
		t.Fatalf("%d records, %v, want %d", len(list), err, inFull+1)
	}
	counting := 0
	for i := range list {
		if list[i].Count > 1 {
			counting++
		}
		if list[i].Outcome != "refused" || list[i].Code != "budget_exceeded" || list[i].Key != s.key {
			t.Errorf("record %+v", list[i])
		}
	}
	if sum := counted(list); sum != all || counting != 1 {
		t.Errorf("%d refusals counted in %d counting records, want %d in one", sum, counting, all)
	}
	apply(t, d.store, s.admit(d, "m1", 2*dollar), s.admit(d, "m1", 2*dollar))
	list, err = d.store.Calls(t.Context(), "acme", store.CallQuery{Limit: 2 * all})
	if got := counted(list); err != nil || len(list) != inFull+1 || got != all+2 {
		t.Errorf("%d records count %d after two more, %v: they belong to the counting one", len(list), got, err)
	}
	if list, err = d.store.Calls(t.Context(), "quiet", store.CallQuery{Limit: 5}); err != nil || len(list) != 1 {
		t.Errorf("another workspace: %d records, %v", len(list), err)
	}
}

func counted(list []store.Call) (sum int64) {
	for i := range list {
		sum += list[i].Count
	}
	return sum
}

// usage: reports sum events by key, model and local date (RES-10).
func usage(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	zone, err := window.Zone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	run := func(at time.Time, key, model string, spend int64) *ledger.Reservation {
		d.clock.Set(at.UnixMicro())
		s.key = key
		result := apply(t, d.store, s.admit(d, model, dollar))[0]
		d.clock.Advance(48 * time.Hour) // usage belongs to its admission
		apply(t, d.store, s.settle(result.Reservation, spend))
		return result.Reservation
	}
	night := time.Date(2026, 3, 8, 3, 0, 0, 0, time.UTC) // the 7th in New York
	run(night, "k1", "m1", 1)
	run(night.Add(4*time.Hour), "k1", "m1", 2)
	run(night.Add(5*time.Hour), "k1", "m2", 4)
	r := run(night.Add(6*time.Hour), "k2", "m1", 8)
	apply(t, d.store, &ledger.Op{
		Verb: ledger.Adjust, Workspace: s.workspace, Reservation: r,
		Entry: &ledger.Entry{Kind: ledger.EventCorrection, Amounts: ledger.Amounts{Spend: -3}, Reason: "wrong price", Actor: "ada"},
	})
	apply(t, d.store, &ledger.Op{
		Verb: ledger.Fund, ID: d.newID(), Workspace: s.workspace, Checks: s.checks()[:1],
		Entry: &ledger.Entry{Kind: ledger.EventCredit, Amounts: ledger.Amounts{Spend: 1000}},
	})
	row := func(spend, requests, events int64, group ...string) store.UsageRow {
		u := store.UsageRow{Spend: spend, Tokens: 120 * requests, Requests: requests, Events: events, Group: map[store.By]string{}}
		for i := 0; i < len(group); i += 2 {
			u.Group[store.By(group[i])] = group[i+1]
		}
		return u
	}
	from, to := night.UnixMicro(), night.Add(24*time.Hour).UnixMicro()
	for _, c := range []struct {
		query store.UsageQuery
		want  []store.UsageRow
	}{
		{store.UsageQuery{From: from, To: to}, []store.UsageRow{row(12, 4, 5)}},
		{store.UsageQuery{From: from + 1, To: to, By: []store.By{store.ByKey}}, []store.UsageRow{row(6, 2, 2, "key", "k1"), row(5, 1, 2, "key", "k2")}},
		{store.UsageQuery{From: from, To: to, By: []store.By{store.ByDay, store.ByModel}, Zone: zone}, []store.UsageRow{
			row(1, 1, 1, "day", "2026-03-07", "model", "m1"), row(7, 2, 3, "day", "2026-03-08", "model", "m1"), row(4, 1, 1, "day", "2026-03-08", "model", "m2"),
		}},
		{store.UsageQuery{From: from, To: to, By: []store.By{store.ByDay, store.ByTeam, store.ByProvider, store.ByUser, store.ByProject}}, []store.UsageRow{
			row(12, 4, 5, "day", "2026-03-08", "team", "red", "provider", "acme", "user", "ada", "project", "x"),
		}},
		{store.UsageQuery{From: from - 10, To: from}, []store.UsageRow{}},
	} {
		c.query.Workspace = "acme"
		got, err := d.store.Usage(t.Context(), c.query)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("usage %+v:\n%+v, %v, want\n%+v", c.query, got, err, c.want)
		}
	}
	balanced(t, d.store)
}
