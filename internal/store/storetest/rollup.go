// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/window"
)

// Roll makes every step of rolling usage up, if the store does not do it by
// itself.
func Roll(ctx context.Context, s any, limit int) (events int64, err error) {
	book, ok := s.(store.Rollable)
	if !ok {
		return 0, nil
	}
	for {
		n, done, err := book.Roll(ctx, limit)
		if events += n; err != nil || done {
			return events, err
		}
	}
}

// bruteUsage is the report of a query, straight from all events there ever were.
func bruteUsage(events []ledger.Event, q *store.UsageQuery, whole int64) []store.UsageRow {
	rows, all := make(map[string]store.UsageRow), make(map[string][]string)
	for i := range events {
		e := &events[i]
		at := e.AdmittedAt
		if at < whole {
			at = at - at%aDay + aDay/2
		}
		if e.Workspace != q.Workspace || e.Kind >= ledger.EventTopUp || at < q.From || at >= q.To ||
			e.Kind == ledger.EventVoided || e.Kind == ledger.EventUndone {
			continue
		}
		values, group := make([]string, len(q.By)), make(map[store.By]string)
		for j, by := range q.By {
			values[j] = map[store.By]string{
				store.ByKey: e.Subjects.Key, store.ByModel: e.Model, store.ByProvider: e.Provider, store.ByUser: e.Subjects.User,
				store.ByTeam: e.Subjects.Team, store.ByProject: e.Subjects.Project, store.ByDay: window.DayAt(at, q.Zone).String(),
			}[by]
			group[by] = values[j]
		}
		key := fmt.Sprintf("%q", values)
		row := rows[key]
		all[key] = values
		row.Group, row.Spend, row.Tokens, row.Events = group, row.Spend+e.Spend, row.Tokens+e.Tokens, row.Events+1
		if e.Kind != ledger.EventCorrection && e.Attempt == 0 {
			row.Requests++
		}
		rows[key] = row
	}
	keys := make([]string, 0, len(rows))
	for key := range rows {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return slices.Compare(all[a], all[b]) })
	list := make([]store.UsageRow, 0, len(rows))
	for _, key := range keys {
		list = append(list, rows[key])
	}
	return list
}

// usedMix is a random history of several users, whose usage is rolled up now and
// then.
type usedMix struct {
	*agedMix
	began int64
}

func (m *usedMix) step(t *rapid.T) {
	word := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	m.by(t)
	m.shop.key = word("key", "k1", "k2")
	m.forget(t.Context())
	ops := make([]*ledger.Op, rapid.IntRange(1, 6).Draw(t, "size"))
	for i := range ops {
		ops[i] = m.op()
		if ops[i].Verb == ledger.Admit {
			ops[i].Subjects.User, ops[i].Subjects.Team = word("user", "", "ada", "eve", "ada\x00"), word("team", "red", "blue")
			ops[i].Subjects.Project = word("project", "", "x")
			ops[i].Candidates[0].Provider = word("provider", "acme", "other")
		}
	}
	m.apply(t, ops)
	const most = int64(5 * time.Hour)
	m.desk.clock.Advance(time.Duration(rapid.Int64Range(0, most).Draw(t, "passed")))
	if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
		m.desk.clock.Advance(time.Duration(rapid.IntRange(20, 80).Draw(t, "days")) * 24 * time.Hour)
	}
	if book, ok := m.desk.store.(store.Rollable); ok && rapid.Bool().Draw(t, "rolls") {
		if _, _, err := book.Roll(t.Context(), rapid.IntRange(1, 20).Draw(t, "limit")); err != nil {
			t.Fatal(err)
		}
	}
	cut := cutAt(m.desk.clock.Now())
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		m.cut = max(m.cut, cut.Calls, cut.Events)
		if _, _, err := m.desk.store.Prune(t.Context(), cut, rapid.IntRange(1, 30).Draw(t, "limit")); err != nil {
			t.Fatal(err)
		}
	}
}

// query draws a report: of a range whose ends lie anywhere, by anything, in any
// zone.
func (m *usedMix) query(t *rapid.T) store.UsageQuery {
	now := m.desk.clock.Now()
	at := func(name string) int64 {
		at := rapid.Int64Range(m.began-aDay, now+aDay).Draw(t, name)
		switch rapid.IntRange(0, 3).Draw(t, name+" is") {
		case 0:
			return window.QuarterAt(at)
		case 1:
			return at - at%aDay
		case 2:
			return rapid.SampledFrom([]int64{0, now, math.MaxInt64}).Draw(t, name+" at")
		default:
			return at
		}
	}
	q := store.UsageQuery{Workspace: m.shop.workspace, From: at("from"), To: at("to")}
	all := []store.By{store.ByKey, store.ByModel, store.ByProvider, store.ByUser, store.ByTeam, store.ByProject, store.ByDay}
	q.By = rapid.Permutation(all).Draw(t, "by")[:rapid.IntRange(0, len(all)).Draw(t, "groups")]
	name := rapid.SampledFrom([]string{"", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati", "Australia/Lord_Howe", "odd"}).Draw(t, "zone")
	if name == "odd" {
		q.Zone = time.FixedZone("odd", 4057)
	} else if name != "" {
		zone, err := window.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		q.Zone = zone
	}
	return q
}

// reportsAgree: whatever was rolled up and dropped when, a report is the sum of
// all events there ever were (RES-6, RES-10, ENGINE 11).
func reportsAgree(t *testing.T, driver Driver) {
	c := clock.NewManual(Noon)
	d := newDesk(t, driver.open(t, Options{Clock: c}), c, 1, false)
	other := memory.New(memory.Options{Clock: c})
	check := 0
	rapid.Check(t, func(t *rapid.T) {
		check++
		m := &usedMix{agedMix: newAged(check, d, other), began: c.Now()}
		m.shop.workspace = fmt.Sprint("used", check)
		for range rapid.IntRange(1, 12).Draw(t, "batches") {
			m.step(t)
		}
		books, err := Take(t.Context(), d.store)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Take(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			q := m.query(t)
			have, err := d.store.Usage(t.Context(), q)
			if want := bruteUsage(all.Events, &q, books.Whole); err != nil || !reflect.DeepEqual(have, want) {
				t.Fatalf("%+v:\n%+v, %v, events say\n%+v", q, have, err, want)
			}
		}
	})
	balanced(t, d.store)
}

// reportsOutliveEvents: what events are dropped leave in reports, by the day
// (RES-6).
func reportsOutliveEvents(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	zone, err := window.Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	began := d.clock.Now()
	for i := range 110 {
		s.key = fmt.Sprint("k", i%3)
		apply(t, d.store, s.settle(s.open(t, d, dollar), int64(i)+1))
		d.after(1)
	}
	if _, err := Roll(t.Context(), d.store, 7); err != nil {
		t.Fatal(err)
	}
	report := func(by ...store.By) []store.UsageRow {
		rows, err := d.store.Usage(t.Context(), store.UsageQuery{Workspace: s.workspace, From: began - aDay, To: math.MaxInt64, By: by, Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := [][]store.UsageRow{report(), report(store.ByKey), report(store.ByDay, store.ByUser)}
	if step := d.prune(t, 3); step.Events == 0 {
		t.Fatalf("dropped %+v", step)
	}
	if after := [][]store.UsageRow{report(), report(store.ByKey), report(store.ByDay, store.ByUser)}; !reflect.DeepEqual(before, after) || len(after[2]) != 110 {
		t.Errorf("reports are\n%+v, were\n%+v", after, before)
	}
	// A late correction of what is kept, and one more request, count as ever.
	r := s.open(t, d, dollar)
	apply(t, d.store, s.settle(r, dollar))
	rows := report()
	if want := before[0][0].Spend + dollar; len(rows) != 1 || rows[0].Spend != want {
		t.Errorf("%+v, want %d", rows, want)
	}
}

// lateUsageCounts: what arrives when its quarter is long rolled up counts there,
// once, before the next roll-up and after it (RES-2, RES-10).
func lateUsageCounts(t *testing.T, driver Driver) {
	d, s := driver.desk(t), newShop("acme")
	at := d.clock.Now()
	swept, waits, settled := s.open(t, d, 3*dollar), s.open(t, d, 3*dollar), s.open(t, d, 3*dollar)
	apply(t, d.store, s.end(ledger.Sweep, swept), s.settle(settled, dollar))
	check := func(spend int64) {
		t.Helper()
		for range 2 {
			rows, err := d.store.Usage(t.Context(), store.UsageQuery{Workspace: s.workspace, From: at, To: at + 1})
			if err != nil || len(rows) != 1 || rows[0].Spend != spend {
				t.Errorf("%+v, %v, want %d", rows, err, spend)
			}
			if _, err := Roll(t.Context(), d.store, 1); err != nil {
				t.Fatal(err)
			}
			balanced(t, d.store)
		}
	}
	check(4 * dollar)
	d.after(3)
	apply(t, d.store, s.settle(swept, dollar), s.settle(waits, 2*dollar))
	check(4 * dollar)
	d.after(20)
	op := s.end(ledger.Adjust, settled)
	op.Entry = &ledger.Entry{Kind: ledger.EventCorrection, Amounts: ledger.Amounts{Spend: -dollar / 2}, Reason: "late", Actor: "ada"}
	apply(t, d.store, op)
	check(3*dollar + dollar/2)
}

// reportWhileOthersWrite: a report has everything that was answered before it
// began, whatever is being settled and rolled up meanwhile (RES-11).
func reportWhileOthersWrite(t *testing.T, d *desk) {
	s := newShop("acme")
	s.budget = 1000 * dollar
	var sent, answered atomic.Int64
	report := func() int64 {
		rows, err := d.store.Usage(t.Context(), store.UsageQuery{Workspace: s.workspace, To: math.MaxInt64})
		if err != nil {
			t.Error(err)
		}
		if len(rows) == 0 {
			return 0
		}
		return rows[0].Requests
	}
	together(callers, func(i int) {
		for range rounds {
			switch i {
			case 0:
				if _, err := Roll(t.Context(), d.store, 5); err != nil {
					t.Error(err)
				}
			case 1:
				least := answered.Load()
				have := report()
				if most := sent.Load(); have < least || have > most {
					t.Errorf("a report of %d requests: %d were answered, %d sent", have, least, most)
				}
			default:
				r := s.open(t, d, dollar)
				sent.Add(1)
				d.do(t, s.settle(r, dollar))
				answered.Add(1)
			}
		}
	})
	for range 2 {
		if have := report(); have != sent.Load() {
			t.Errorf("%d requests, %d were sent", have, sent.Load())
		}
		if _, err := Roll(t.Context(), d.store, 1000); err != nil {
			t.Error(err)
		}
		d.balanced(t)
	}
}
