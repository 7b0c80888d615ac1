// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/store"
)

// request is one call on its way through the ledger, as the gateway makes it.
type request struct {
	w      *world
	id     ledger.ID
	plan   *admit.Plan
	result ledger.Result
}

func (w *world) request(secret, model, clientID string) *request {
	w.t.Helper()
	k, snapshot, err := w.directory.Identify(w.t.Context(), secret)
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock.Advance(time.Second)
	r := &request{w: w, id: ledger.NewID(w.clock.Now(), [10]byte{1})}
	r.plan = admit.Build(admit.Request{
		ID: r.id, Key: k, Snapshot: snapshot, Process: "p", ClientID: clientID, HoldMicros: time.Minute.Microseconds(),
		Call: &call.Call{Door: call.OpenAIChat, Model: model, OutputBound: 100, OutputField: "max_tokens", Completions: 1, Prompt: call.Prompt{TextBytes: 279, Messages: 1}},
	})
	if r.result, err = w.teller.Submit(w.t.Context(), r.plan.Op); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (r *request) settle(input, output int64) {
	r.w.t.Helper()
	charged := admit.Settle(r.result.Reservation, &r.plan.Targets[0], admit.Ending{
		Sent: true, Outcome: "ok", Status: 200, EndedAt: r.w.clock.Now(),
		Observed: call.Observed{Usage: call.Usage{Input: input, Output: output, Requests: 1}, Reported: true, Finished: true, OutputSeen: true, Model: "up-1"},
	})
	if _, err := r.w.teller.Submit(r.w.t.Context(), charged.Op); err != nil {
		r.w.t.Fatal(err)
	}
}

func (r *request) explain() admin.RequestAnswer {
	r.w.t.Helper()
	out, err := r.w.RequestShow(r.w.t.Context(), system, admin.RequestShowRequest{ID: r.id.String()})
	if err != nil {
		r.w.t.Fatal(err)
	}
	return out
}

// ADM-7: running, settled, refused, swept, voided: every check in order with its
// figures, the estimate, the price and the charge.
func TestEveryRequestCanBeExplained(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.key("ci", func(f *admin.KeyFields) {
			f.Caps = admin.Some(admin.CapFields{Day: admin.Some("0.0005")})
			f.Limits = admin.Some(admin.RunFields{Concurrency: admin.Some(int64(3))})
		})
		settled := w.request(k.Secret, "m1", "mine")
		running := settled.explain()
		if running.Outcome != "running" || running.End != nil || len(running.Events) != 0 || running.Spend != "0" {
			t.Errorf("running: %+v", running)
		}
		// 279 bytes / 3 + 3 + 4 = 100 tokens at $1, 100 at $10 a million.
		if e := running.Estimate; e == nil || e.InputTokens != 100 || e.OutputTokens != 100 || e.Worst != "0.0011" {
			t.Errorf("estimate: %+v", e)
		}
		if p := running.Price; p == nil || p.ID != running.PriceID || p.Input != "1" || p.Output != "10" {
			t.Errorf("price: %+v", p)
		}
		settled.settle(100, 50)
		out := settled.explain()
		if out.Outcome != "settled" || out.Spend != "0.0006" || out.Tokens != 150 || out.KeyName != "ci" || out.ClientID != "mine" || out.ModelSent != "m1" {
			t.Errorf("settled: %+v", out)
		}
		if out.End == nil || out.End.Outcome != "ok" || out.End.Charge != "0.0006" || out.End.Usage.Output != 50 || out.End.AnsweredModel != "up-1" {
			t.Errorf("end: %+v", out.End)
		}
		if len(out.Events) != 1 || out.Events[0].Spend != "0.0006" || !slices.Contains(out.Events[0].Charges, admin.ChargeView{Limit: "days", Subject: k.ID, Amount: "0.0006"}) {
			t.Errorf("events: %+v", out.Events)
		}
		refusedOne := w.request(k.Secret, "m1", "mine")
		if refusedOne.result.Verdict != ledger.Refused {
			t.Fatalf("verdict %d", refusedOne.result.Verdict)
		}
		out = refusedOne.explain()
		if out.Outcome != "refused" || out.Code != string(fault.DayLimitReached) || len(out.Events) != 0 {
			t.Errorf("refused: %+v", out)
		}
		i := slices.IndexFunc(out.Checks, func(c admin.CheckView) bool { return c.Verdict == "refused" })
		if i < 0 || out.Checks[i].Name != "day cap" || out.Checks[i].Amount != "0.0005" || out.Checks[i].Used != "0.0006" || out.Checks[i].Wanted != "0.0011" || out.Checks[i].Place != i+1 {
			t.Errorf("checks: %+v", out.Checks)
		}
		last := out.Checks[len(out.Checks)-1]
		if last.Name != "concurrency" || last.Verdict != "pass" || last.Amount != "3" || last.Wanted != "1" || last.Metric != "concurrency" {
			t.Errorf("last check: %+v", last)
		}
	})
}

func TestSweptAndVoidedRequestsCanBeExplained(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.key("ci", nil)
		swept, voided, policy := w.request(k.Secret, "m1", ""), w.request(k.Secret, "m1", ""), w.request(k.Secret, "nosuch", "")
		void := admit.Settle(voided.result.Reservation, &voided.plan.Targets[0], admit.Ending{Sent: true, Failed: true, Outcome: "provider_error", Status: 500})
		for _, op := range []*ledger.Op{
			{Verb: ledger.Sweep, Workspace: "default", Reservation: swept.result.Reservation}, void.Op,
		} {
			if _, err := w.teller.Submit(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		if out := swept.explain(); out.Outcome != "swept" || out.Spend != "0.0011" || len(out.Events) != 1 || out.Events[0].Kind != "swept" {
			t.Errorf("swept: %+v", out)
		}
		if out := voided.explain(); out.Outcome != "voided" || out.Spend != "0" || out.End.Status != 500 {
			t.Errorf("voided: %+v", out)
		}
		if out := policy.explain(); out.Code != string(fault.ModelNotFound) || !strings.Contains(out.Message, "nosuch") || out.Price != nil {
			t.Errorf("policy: %+v", out)
		}
	})
}

// BR-196 and ERR-4: a guessed id of another workspace is not there, and a
// client's own id finds its requests in the caller's workspace alone.
func TestRequestsAreFoundInTheirWorkspaceAlone(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredWorkspace(t, "other", 3, nil))
		k := w.key("ci", nil)
		first, second := w.request(k.Secret, "m1", "label"), w.request(k.Secret, "nosuch", "label")
		first.settle(1, 1)
		foreign := admin.Actor{Name: "other's", Role: admin.Admin, Workspace: "other"}
		_, err := w.RequestShow(ctx, foreign, admin.RequestShowRequest{ID: first.id.String()})
		refused(t, err, fault.NotFound)
		_, err = w.RequestShow(ctx, system, admin.RequestShowRequest{ID: "label"})
		refused(t, err, fault.InvalidRequest)
		for name, r := range map[string]admin.RequestListRequest{"label": {ClientID: "label"}, "all": {}, "key": {Key: "ci"}} {
			list, err := w.RequestList(ctx, system, r)
			if err != nil || len(list.Requests) != 2 || list.Requests[0].ID != second.id.String() || list.Requests[0].KeyName != "ci" {
				t.Errorf("%s: %+v, %v", name, list, err)
			}
			if r.Key != "" {
				continue
			}
			if list, err := w.RequestList(ctx, foreign, r); err != nil || len(list.Requests) != 0 {
				t.Errorf("foreign %s: %+v, %v", name, list, err)
			}
		}
		page, err := w.RequestList(ctx, system, admin.RequestListRequest{Limit: 1})
		if err != nil || len(page.Requests) != 1 || page.NextCursor == "" {
			t.Fatalf("page %+v, %v", page, err)
		}
		page, err = w.RequestList(ctx, system, admin.RequestListRequest{Limit: 1, Cursor: page.NextCursor})
		if err != nil || len(page.Requests) != 1 || page.Requests[0].ID != first.id.String() || page.NextCursor != "" {
			t.Fatalf("page %+v, %v", page, err)
		}
		if usage, err := w.Usage(ctx, foreign, admin.UsageRequest{By: "key"}); err != nil || len(usage.Rows) != 0 || usage.Total.Spend != "0" {
			t.Errorf("foreign usage %+v, %v", usage, err)
		}
	})
}

// CAP-3: a report's days are the workspace's own.
func TestUsageIsSummedUpByTheWorkspacesDays(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "m2", 3))
		if _, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{TimeZone: admin.Some("Pacific/Chatham")}}); err != nil {
			t.Fatal(err)
		}
		k := w.key("ci", nil)
		// Noon UTC is 01:45 of the next day there.
		w.request(k.Secret, "m1", "").settle(1000, 0)
		w.clock.Advance(24 * time.Hour)
		w.request(k.Secret, "m2", "").settle(0, 1000)
		usage, err := w.Usage(ctx, system, admin.UsageRequest{By: "day, model"})
		if err != nil {
			t.Fatal(err)
		}
		want := []admin.UsageRow{
			{Day: "2026-03-05", Model: "m1", Spend: "0.001", Tokens: 1000, Requests: 1},
			{Day: "2026-03-06", Model: "m2", Spend: "0.01", Tokens: 1000, Requests: 1},
		}
		if !slices.Equal(usage.Rows, want) || usage.Total.Spend != "0.011" || usage.TimeZone != "Pacific/Chatham" {
			t.Errorf("usage %+v", usage)
		}
		one, err := w.Usage(ctx, system, admin.UsageRequest{By: "key", From: "2026-03-05", To: "2026-03-05"})
		if err != nil || len(one.Rows) != 1 || one.Rows[0].KeyName != "ci" || one.Rows[0].Spend != "0.001" {
			t.Errorf("one day %+v, %v", one, err)
		}
		for _, r := range []admin.UsageRequest{{By: "team_id"}, {By: "key,key"}, {From: "yesterday"}, {From: "2026-03-05", To: "2026-03-01"}} {
			_, err := w.Usage(ctx, system, r)
			refused(t, err, fault.InvalidRequest)
		}
	})
}

// BAL-3, BAL-5, BR-053: top-ups and credits are above zero, adjustments signed
// with a reason; a repeated request books once.
func TestFundsAreBookedOnceAndOnlyAsTheyMay(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if _, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
			Funds: admin.Some("prepaid"), CreditLine: admin.Some("2.5"),
		}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []admin.FundFields{
			{Kind: "top_up", Amount: "-5"},
			{Kind: "credit", Amount: "-0.000000001"},
			{Kind: "top_up", Amount: "0"},
			{Kind: "top_up", Amount: "NaN"},
			{Kind: "top_up", Amount: "1e3"},
			{Kind: "top_up", Amount: "1000000001"},
			{Kind: "top_up", Amount: ""},
			{Kind: "adjustment", Amount: "1"},
			{Kind: "adjustment", Amount: "0", Reason: "none"},
			{Kind: "gift", Amount: "1"},
		} {
			_, err := w.FundsBook(ctx, system, admin.FundRequest{Body: c})
			refused(t, err, fault.InvalidRequest)
		}
		if entries, err := w.FundsEntries(ctx, system, admin.FundEntriesRequest{}); err != nil || len(entries.Entries) != 0 {
			t.Fatalf("booked %+v, %v", entries, err)
		}
		book := func(key string, f admin.FundFields, balance string, replayed bool) {
			t.Helper()
			w.clock.Advance(time.Second)
			out, err := w.FundsBook(ctx, system, admin.FundRequest{IdempotencyKey: key, Body: f})
			if err != nil || out.Balance != balance || out.Replayed != replayed || out.Entry == nil {
				t.Errorf("%+v: %+v, %v", f, out, err)
			}
		}
		top := admin.FundFields{Kind: "top_up", Amount: "10.000000001"}
		book("a", top, "10.000000001", false)
		book("a", top, "10.000000001", true)
		book("", admin.FundFields{Kind: "credit", Amount: "1"}, "11.000000001", false)
		book("b", admin.FundFields{Kind: "adjustment", Amount: "-12", Reason: "a slip"}, "-0.999999999", false)
		_, err := w.FundsBook(ctx, system, admin.FundRequest{IdempotencyKey: "a", Body: admin.FundFields{Kind: "top_up", Amount: "11"}})
		refused(t, err, fault.IdempotencyKeyReused)
		balance, err := w.FundsShow(ctx, system, admin.BalanceRequest{})
		if err != nil || balance.Available != "1.500000001" || balance.CreditLine != "2.5" {
			t.Errorf("balance %+v, %v", balance, err)
		}
		entries, err := w.FundsEntries(ctx, system, admin.FundEntriesRequest{Limit: 2})
		if err != nil || len(entries.Entries) != 2 || entries.Entries[0].Reason != "a slip" || entries.Entries[0].Actor != "test" || entries.NextCursor == "" {
			t.Errorf("entries %+v, %v", entries, err)
		}
		var actions []string
		for _, e := range w.audits() {
			if e.Kind == "funds" {
				actions = append(actions, e.Action)
			}
		}
		if !slices.Equal(actions, []string{"funds.adjustment", "funds.credit", "funds.top_up"}) {
			t.Errorf("audited %v", actions)
		}
	})
}

// RES-7: the books of a store with every kind of record balance, and a counter
// that lies is named.
func TestVerifyNamesWhatDoesNotBalance(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.key("ci", nil)
		w.request(k.Secret, "m1", "").settle(10, 10)
		w.request(k.Secret, "m1", "") // still running
		if _, err := w.FundsBook(ctx, system, admin.FundRequest{Body: admin.FundFields{Kind: "top_up", Amount: "1"}}); err != nil {
			t.Fatal(err)
		}
		out, err := w.Verify(ctx, system, admin.VerifyRequest{})
		if err != nil || !out.Balanced || out.Counts.Events != 2 || out.Counts.Reservations != 1 {
			t.Fatalf("verified %+v, %v", out, err)
		}
		w.options.Verifiable = lying{w.book}
		out, err = admin.New(w.options).Verify(ctx, system, admin.VerifyRequest{})
		if err != nil || out.Balanced || len(out.Differences) == 0 {
			t.Fatalf("verified %+v, %v", out, err)
		}
		for _, d := range out.Differences {
			if d.Limit == "funds" && d.Figure == "credits" && d.Have == 1_000_000_001 && d.Want == 1_000_000_000 {
				return
			}
		}
		t.Errorf("differences %+v", out.Differences)
	})
}

// lying is a store whose funds counter has been tampered with.
type lying struct{ store.Verifiable }

func (l lying) View(ctx context.Context, fn func(store.Reader) error) error {
	return l.Verifiable.View(ctx, func(r store.Reader) error { return fn(liar{r}) })
}

type liar struct{ store.Reader }

func (l liar) Counters(fn func(ledger.Counter, *ledger.State) error) error {
	return l.Reader.Counters(func(c ledger.Counter, s *ledger.State) error {
		if s = s.Clone(); c == limit.FundsCounter("default") {
			s.Credits++
		}
		return fn(c, s)
	})
}

func TestAUsageIsPricedAsARequestIs(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		cost, err := w.PriceCost(ctx, system, admin.PriceCostRequest{Body: admin.CostFields{Model: "m1", Input: 1, Output: 3, CachedInput: 1}})
		if err != nil || cost.Cost != "0.000032" || cost.Price.Source != "override" {
			t.Errorf("cost %+v, %v", cost, err)
		}
		shown, err := w.PriceShow(ctx, system, admin.PriceShowRequest{Model: "m1"})
		if err != nil || !shown.Configured || shown.Price.Output != "10" || shown.Price.ID != cost.Price.ID {
			t.Errorf("shown %+v, %v", shown, err)
		}
		catalogue, err := w.PriceShow(ctx, system, admin.PriceShowRequest{Model: "gpt-4o-mini", Provider: "openai"})
		if err != nil || catalogue.Configured || catalogue.Price.Source != "built-in" {
			t.Errorf("catalogue %+v, %v", catalogue, err)
		}
		for _, c := range []struct {
			body admin.CostFields
			code fault.Code
		}{
			{admin.CostFields{Model: "nosuch"}, fault.NotFound},
			{admin.CostFields{Model: "m1", Input: -1}, fault.InvalidRequest},
			{admin.CostFields{}, fault.InvalidRequest},
			{admin.CostFields{Model: "m1", Input: 2_000_000_000}, fault.InvalidRequest},
		} {
			_, err := w.PriceCost(ctx, system, admin.PriceCostRequest{Body: c.body})
			refused(t, err, c.code)
		}
		list, err := w.PriceList(ctx, system, admin.PriceListRequest{Limit: 1000})
		if err != nil || len(list.Prices) != 1000 || list.Prices[0].Model != "m1" || list.NextCursor == "" {
			t.Errorf("%d prices, cursor %q, %v", len(list.Prices), list.NextCursor, err)
		}
		models, err := w.PriceList(ctx, system, admin.PriceListRequest{Models: true})
		if err != nil || len(models.Prices) != 1 {
			t.Errorf("models %+v, %v", models, err)
		}
	})
}

func TestModelsAndProvidersAreShownWithoutCredentials(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "org/m1", 2))
		model, err := w.ModelShow(ctx, system, admin.ModelRequest{Model: "org/m1"})
		if err != nil || !model.Shared || model.Origin != "weir.yaml:2" || model.Price.Input != "1" {
			t.Errorf("model %+v, %v", model, err)
		}
		provider, err := w.ProviderShow(ctx, system, admin.ProviderRequest{Provider: "up"})
		if err != nil || !provider.HasCredential || provider.Origin != "weir.yaml:1" {
			t.Errorf("provider %+v, %v", provider, err)
		}
		_, err = w.ModelShow(ctx, system, admin.ModelRequest{Model: "nosuch"})
		refused(t, err, fault.NotFound)
	})
}
