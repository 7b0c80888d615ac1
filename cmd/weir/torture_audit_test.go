// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// books are the running program's, read over the socket beside its store.
type books struct {
	t     *testing.T
	by    map[string]*client.Client // workspace, "" is the default one
	close func()
}

func (w *tortured) connect() *books {
	w.t.Helper()
	way, closeWay, err := app.Connect(context.Background(), app.Options{
		ConfigPath: w.config, Stderr: io.Discard, Stdout: io.Discard,
		Env: func(name string) (string, bool) { value, ok := w.env[name]; return value, ok },
	})
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	b := &books{t: w.t, by: map[string]*client.Client{}, close: func() { _ = closeWay() }}
	for _, k := range tortureKeys {
		b.by[k.workspace] = client.New(client.Options{Transport: way, Workspace: k.workspace})
	}
	return b
}

// fund pays in what the prepaid workspaces may spend.
func (w *tortured) fund() {
	w.t.Helper()
	b := w.connect()
	defer b.close()
	for workspace, amount := range map[string]string{"held": heldCredit, "paid": paidCredit} {
		_, err := b.by[workspace].FundsBook(context.Background(), admin.FundRequest{Body: admin.FundFields{Kind: "top_up", Amount: amount}})
		if err != nil {
			w.t.Fatalf("top up: %v", err)
		}
	}
}

// list gives the call log of a workspace: requests of one outcome.
func (b *books) list(workspace, outcome string) []admin.RequestSummary {
	b.t.Helper()
	var all []admin.RequestSummary
	r := admin.RequestListRequest{Outcome: outcome, Limit: 1000}
	for {
		page, err := b.by[workspace].RequestList(context.Background(), r)
		if err != nil {
			b.t.Fatalf("list the %s requests of %q: %v", outcome, workspace, err)
		}
		all = append(all, page.Requests...)
		if r.Cursor = page.NextCursor; r.Cursor == "" {
			return all
		}
	}
}

// held names a limit of any key that still holds something, or a slot that is
// taken; empty when there is none.
func (b *books) held() string {
	b.t.Helper()
	for _, k := range tortureKeys {
		view, err := b.by[k.workspace].KeyLimits(context.Background(), admin.KeyRequest{Key: k.name})
		if err != nil {
			b.t.Fatalf("limits of %s: %v", k.name, err)
		}
		for _, l := range view.Limits {
			if l.Held != "0" || l.Metric == "concurrency" && l.Used != "0" {
				return fmt.Sprintf("%s of %s holds %s, has used %s", l.ID, k.name, l.Held, l.Used)
			}
		}
	}
	return ""
}

// running is how many requests are open. Several programs leave tombstones too, of
// what one of them called off; there the slots alone tell.
func (w *tortured) running(b *books) int64 {
	if w.pick != nil {
		return 0
	}
	return b.verify().Counts.Reservations
}

// call is one request of the call log with its instants in Unix microseconds.
type call struct {
	admin.RequestAnswer
	at, ended int64
	spend     money.Nanos
	worst     money.Nanos
}

// audit compares what clients saw, what the provider served and what the ledger
// says.
type audit struct {
	w       *tortured
	crowd   *crowd
	bill    simulator.Bill
	entries map[string][]simulator.Entry // by tag
	calls   map[string]*call             // admitted ones, by tag
	found   map[string]int
}

func (a *audit) String() string { return tally(a.found) }

func (a *audit) fault(format string, args ...any) {
	a.w.t.Helper()
	if a.found["faults"]++; a.found["faults"] <= 20 {
		a.w.t.Errorf(format, args...)
	}
}

func (w *tortured) audit(crowd *crowd) *audit {
	w.t.Helper()
	a := &audit{w: w, crowd: crowd, bill: w.provider.Bill(), entries: map[string][]simulator.Entry{}, calls: map[string]*call{}, found: map[string]int{}}
	for _, e := range a.bill.Log {
		a.entries[e.Agent] = append(a.entries[e.Agent], e)
	}
	b := w.connect()
	defer b.close()
	a.verified(b)
	spent := a.read(b)
	a.totals(b, spent)
	a.reached()
	for tag, s := range crowd.sent {
		a.seen(tag, s)
	}
	for _, c := range a.calls {
		a.charged(c)
	}
	a.limits()
	a.found["sent"], a.found["garbage"], a.found["reached"] = len(crowd.sent), crowd.odd, int(a.bill.Requests)
	return a
}

// verify recomputes every counter of the store.
func (b *books) verify() admin.VerifyAnswer {
	b.t.Helper()
	report, err := b.by[""].Verify(context.Background(), admin.VerifyRequest{})
	if err != nil {
		b.t.Fatalf("verify: %v", err)
	}
	return report
}

// verified: the books balance, and hold nothing (RES-7).
func (a *audit) verified(b *books) {
	a.w.t.Helper()
	report := b.verify()
	if !report.Balanced || len(report.Differences) > 0 || a.w.running(b) > 0 {
		a.fault("the books do not balance: %+v, %+v", report.Counts, report.Differences)
	}
	if held := b.held(); held != "" {
		a.fault("at rest %s", held)
	}
}

// read takes every admitted request out of the call log, with its checks. It
// gives what each workspace has spent by it.
func (a *audit) read(b *books) map[string]money.Nanos {
	a.w.t.Helper()
	spent := map[string]money.Nanos{}
	for workspace := range b.by {
		var ids []string
		for _, outcome := range []string{"settled", "swept", "voided", "undone"} {
			for _, r := range b.list(workspace, outcome) {
				ids = append(ids, r.ID)
				a.found[outcome]++
			}
		}
		for _, r := range b.list(workspace, "refused") {
			a.found["refused "+r.Code] += int(r.Count)
			if n := len(a.entries[r.ClientID]); r.ClientID != "" && n > 0 {
				a.fault("%s was refused with %s, and reached the provider %d times", r.ID, r.Code, n)
			}
		}
		for _, c := range a.explain(b.by[workspace], ids) {
			spent[workspace] += c.spend
			if c.ClientID == "" {
				continue // a probe
			}
			if other := a.calls[c.ClientID]; other != nil {
				a.fault("%s was admitted twice, as %s and %s", c.ClientID, other.ID, c.ID)
			}
			a.calls[c.ClientID] = c
		}
	}
	return spent
}

// explain reads each request in full.
func (a *audit) explain(books *client.Client, ids []string) []*call {
	a.w.t.Helper()
	const readers = 4
	calls := make([]*call, len(ids))
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for reader := range readers {
		wg.Go(func() {
			for i := reader; i < len(ids) && errs[reader] == nil; i += readers {
				answer, err := books.RequestShow(context.Background(), admin.RequestShowRequest{ID: ids[i]})
				if err == nil {
					calls[i], err = newCall(answer)
				}
				errs[reader] = err
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		a.w.t.Fatalf("explain: %v", errs[i])
	}
	return calls
}

func newCall(answer admin.RequestAnswer) (*call, error) {
	c := &call{RequestAnswer: answer}
	at, err := time.Parse(time.RFC3339Nano, answer.At)
	if err != nil {
		return nil, err
	}
	ended, err := time.Parse(time.RFC3339Nano, answer.EndedAt)
	if err != nil {
		return nil, err
	}
	c.at, c.ended = at.UnixMicro(), ended.UnixMicro()
	if c.spend, err = money.ParseSignedUSD(answer.Spend); err != nil {
		return nil, err
	}
	c.worst, err = money.ParseUSD(answer.Estimate.Worst)
	return c, err
}

// totals: the reports add up to the call log.
func (a *audit) totals(b *books, spent map[string]money.Nanos) {
	a.w.t.Helper()
	for workspace, books := range b.by {
		usage, err := books.Usage(context.Background(), admin.UsageRequest{})
		if err != nil {
			a.w.t.Fatalf("usage: %v", err)
		}
		if usage.Total.Spend != spent[workspace].String() {
			a.fault("workspace %q has spent %s by its usage and %s by its call log", workspace, usage.Total.Spend, spent[workspace])
		}
	}
}

// reached: what the provider saw was admitted and is in the ledger (RES-1).
func (a *audit) reached() {
	if a.bill.Dropped > 0 {
		a.w.t.Fatalf("the provider has forgotten %d requests", a.bill.Dropped)
	}
	for tag, entries := range a.entries {
		if tag == probeTag {
			continue
		}
		c := a.calls[tag]
		switch {
		case a.crowd.sent[tag] == nil:
			a.fault("%s reached the provider: garbage, or nobody sent it", tag)
		case len(entries) > 1:
			a.fault("%s reached the provider %d times", tag, len(entries))
		case c == nil:
			a.fault("%s reached the provider and is not in the ledger", tag)
		case c.Outcome == "undone":
			a.fault("%s (%s) reached the provider and was undone", tag, c.ID)
		}
	}
}

// seen: what a client saw agrees with what happened.
func (a *audit) seen(tag string, s *sent) {
	c, reached := a.calls[tag], len(a.entries[tag]) > 0
	switch {
	case s.refused() && reached:
		a.fault("%s was refused with %d %s (%s), and reached the provider", tag, s.status, s.code, s.message)
	case s.late:
		a.fault("%s was refused with %s, though the answer before it had been read to its end", tag, s.code)
	case s.code == "internal_error":
		a.fault("%s was answered %d %s", tag, s.status, s.message)
	case s.key == "nobody" && (reached || c != nil || s.status != 401 && s.status != 0 && s.status != 503):
		a.fault("%s with a wrong key got %d %s", tag, s.status, s.code)
	case s.status == 200 && c == nil:
		a.fault("%s was answered and is not in the ledger", tag)
	case c != nil && c.User != s.user:
		a.fault("%s named user %q, the ledger says %q", tag, s.user, c.User)
	case s.whole && s.cost != "" && c.Outcome != "swept" && s.cost != c.Spend:
		a.fault("%s was told that it costs %s, the ledger says %s", tag, s.cost, c.Spend)
	}
	switch {
	case s.status == 200:
		a.found["answered"]++
	case s.refused():
		a.found["clients refused"]++
	case s.status != 0:
		a.found["failures passed on"]++
	}
}
