// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
)

// asJSON is a body as it comes over HTTP.
func asJSON[T any](t *testing.T, text string) (body T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func (w *world) budget(body string) admin.BudgetAnswer {
	w.t.Helper()
	b, err := w.BudgetCreate(w.t.Context(), system, admin.BudgetCreateRequest{Body: asJSON[admin.BudgetFields](w.t, body)})
	if err != nil {
		w.t.Fatalf("make budget %s: %v", body, err)
	}
	return b
}

func (w *world) budgets() map[string]admin.BudgetAnswer {
	w.t.Helper()
	list, err := w.BudgetList(w.t.Context(), system, admin.BudgetListRequest{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]admin.BudgetAnswer{}
	for _, b := range list.Budgets {
		byName[b.Name] = b
	}
	return byName
}

func (w *world) plan(name string) {
	w.t.Helper()
	if _, err := w.PlanCreate(w.t.Context(), system, admin.PlanCreateRequest{Body: admin.PlanFields{Name: admin.Some(name)}}); err != nil {
		w.t.Fatal(err)
	}
}

// member is a key with every subject that a limit can have.
func (w *world) member() admin.KeyAnswer {
	w.t.Helper()
	w.plan("intern")
	return w.key("ci", func(f *admin.KeyFields) {
		f.Team, f.Project, f.User, f.Plan = admin.Some("platform"), admin.Some("search"), admin.Some("ada"), admin.Some("intern")
	})
}

func show(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// BUD-1, BUD-4, BR-012, BR-051, MON-3: every scope with every metric and every
// window is made, counts, is listed with its live use, changed and deleted.
func TestEveryBudgetIsListedWithItsLiveUse(t *testing.T) {
	subjects := map[string]string{
		"org": "", "team": `,"subject":"platform"`, "project": `,"subject":"search"`, "user": `,"subject":"ada"`,
		"key": `,"subject":"ci"`, "plan": `,"subject":"intern"`,
	}
	metrics := map[string]string{"spend": `"limit":5000000`, "tokens": `"limit":5000000`}
	windows := map[string]struct{ json, start, end string }{
		"day":   {`"period":"day","time_zone":"Asia/Kathmandu"`, "2026-03-04T00:00:00+05:45", "2026-03-05T00:00:00+05:45"},
		"week":  {`"period":"week"`, "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"},
		"month": {`"period":"month","time_zone":"Europe/Berlin"`, "2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"},
		"1h":    {`"window":"60m"`, "2026-03-04T12:00:00Z", "2026-03-04T13:00:00Z"},
		"30d":   {`"window":"30d"`, "2026-02-06T00:00:00Z", "2026-03-08T00:00:00Z"},
	}
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.member()
		for scope, subject := range subjects {
			for metric, limit := range metrics {
				for name, window := range windows {
					w.budget(fmt.Sprintf(`{"name":"%s %s %s","scope":"%s","metric":"%s",%s,%s,"enforcement":"hard"%s}`,
						scope, metric, name, scope, metric, limit, window.json, subject))
				}
			}
		}
		w.request(k.Secret, "m1", "").settle(100, 50) // $0.0006, 150 tokens
		held := w.request(k.Secret, "m1", "")         // $0.0011, 200 tokens
		list := w.budgets()
		if len(list) != len(subjects)*len(metrics)*len(windows) {
			t.Fatalf("%d budgets", len(list))
		}
		for name, b := range list {
			words := strings.Fields(name)
			scope, metric, window := words[0], words[1], windows[words[2]]
			if scope == "plan" {
				if b.Per != "subject" || b.Used != nil || b.SubjectName != "intern" || b.WindowStart != "" {
					t.Errorf("%s: %+v", name, b)
				}
				continue
			}
			got := fmt.Sprint(show(b.Used), b.UsedUSD, show(b.Held), b.HeldUSD, show(b.Remaining), b.RemainUSD, b.LimitUSD)
			want := fmt.Sprint(150, "", 200, "", 5_000_000-350, "", "")
			if metric == "spend" {
				want = fmt.Sprint(600, "0.0006", 1100, "0.0011", 5_000_000-1700, "4.9983", "5")
			}
			if got != want || b.WindowStart != window.start || b.ResetsAt != window.end || b.Per != "" || b.Limit != 5_000_000 {
				t.Errorf("%s: %s, want %s (%+v)", name, got, want, b)
			}
		}
		held.settle(1, 1)
		for name, b := range list {
			change := func(body string) admin.BudgetAnswer {
				t.Helper()
				b, err := w.BudgetUpdate(ctx, system, admin.BudgetUpdateRequest{ID: b.ID, Body: asJSON[admin.BudgetFields](t, body)})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return b
			}
			kept := change(`{"limit":6000000,"name":"new ` + name + `","enforcement":"soft","warn_percent":[80]}`)
			if b.Per == "" && (*kept.Used == 0 || kept.Limit != 6_000_000 || kept.Name != "new "+name) {
				t.Errorf("%s: a change of amount starts anew: %+v", name, kept)
			}
			if anew := change(`{"window":"90m"}`); b.Per == "" && (*anew.Used != 0 || anew.Period != "" || anew.Window != "90m") {
				t.Errorf("%s: another window goes on: %+v", name, anew)
			}
			if _, err := w.BudgetDelete(ctx, system, admin.BudgetRequest{ID: b.ID}); err != nil {
				t.Fatal(err)
			}
		}
		if list := w.budgets(); len(list) != 0 {
			t.Errorf("left: %v", list)
		}
		if verified, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !verified.Balanced {
			t.Errorf("verified: %+v, %v", verified, err)
		}
	})
}

// BR-054, MON-4: what is no amount is refused, the field is named, and nothing is
// stored. A string in limit is told what to write.
func TestAWrongBudgetIsRefusedByNameAndNotStored(t *testing.T) {
	spend := func(rest string) string {
		return `{"name":"b","scope":"org","metric":"spend","period":"day",` + rest + `}`
	}
	cases := []struct{ body, param, says string }{
		{spend(`"limit":-7`), "limit", ""},
		{spend(`"limit":0`), "limit", "above 0"},
		{spend(`"limit":NaN`), "", ""},
		{spend(`"limit":"NaN"`), "limit", "limit_usd"},
		{spend(`"limit":"10"`), "limit", "limit_usd"},
		{spend(`"limit":1e309`), "limit", "micro-dollars"},
		{spend(`"limit":1e3`), "limit", "micro-dollars"},
		{spend(`"limit":10.5`), "limit", "micro-dollars"},
		{spend(`"limit":10.0`), "limit", "micro-dollars"},
		{spend(`"limit":1000000000000001`), "limit", ""},
		{spend(`"limit":null`), "limit", ""},
		{spend(`"limit":5,"limit_usd":"5"`), "limit_usd", "leave one out"},
		{spend(`"limit_usd":5`), "limit_usd", "string"},
		{spend(`"limit_usd":"10.1234567891"`), "limit_usd", ""},
		{spend(`"limit_usd":"+Inf"`), "limit_usd", ""},
		{spend(`"limit_usd":"-1"`), "limit_usd", ""},
		{spend(`"limit_usd":"0"`), "limit_usd", "above 0"},
		{spend(`"warn_percent":[80]`), "limit", "required"},
		{spend(`"limit":5,"rpm":1`), "rpm", "unknown"},
		{spend(`"limit":5,"window":"1h"`), "", "leave one out"},
		{spend(`"limit":5,"subject":"x"`), "subject", "org"},
		{spend(`"limit":5,"warn_percent":[101]`), "warn_percent[0]", ""},
		{spend(`"limit":5,"model":"nosuch"`), "model", "no model"},
		{spend(`"limit":5,"provider":"nosuch"`), "provider", "no provider"},
		{`{"name":"b","scope":"org","metric":"tokens","period":"day","limit":"5"}`, "limit", ""},
		{`{"name":"b","scope":"org","metric":"tokens","period":"day","limit_usd":"5"}`, "limit_usd", "limit"},
		{`{"name":"b","scope":"org","period":"day","limit_usd":"5"}`, "metric", ""},
		{`{"name":"b","scope":"key","subject":"nosuch","metric":"tokens","period":"day","limit":5}`, "subject", "no key"},
		{`{"name":"b","scope":"plan","subject":"nosuch","metric":"tokens","period":"day","limit":5}`, "subject", "no plan"},
		{`{"name":"b","scope":"plan","metric":"tokens","period":"day","limit":5}`, "subject", "required"},
		{`{"name":"b","scope":"org","metric":"tokens","window":"fortnight","limit":5}`, "window", ""},
		{`{"scope":"org","metric":"tokens","window":"1h","limit":5}`, "name", "required"},
		{`{"name":"b","scope":"org","metric":"tokens","window":"1h","limit":5,"count_cached":false,"count_from":"window_start"}`, "count_from", ""},
	}
	overEvery(t, func(t *testing.T, w *world) {
		h := w.handler(admin.BySocket())
		for _, c := range cases {
			got, refused := send(h, "POST", admin.Base+"/models/budgets", c.body)
			if got.Code != 400 || refused.Detail.Code != "invalid_request" || refused.Detail.Param != c.param || !strings.Contains(refused.Detail.Message, c.says) {
				t.Errorf("%s: %d %s, want param %q and %q", c.body, got.Code, got.Body, c.param, c.says)
			}
		}
		if list := w.budgets(); len(list) != 0 {
			t.Errorf("stored %v", list)
		}
		// BUD-6: none with a store that keeps nothing.
		w.options.Durable = false
		_, err := admin.New(w.options).BudgetCreate(t.Context(), system, admin.BudgetCreateRequest{
			Body: asJSON[admin.BudgetFields](t, spend(`"limit":5`)),
		})
		refused(t, err, fault.InvalidRequest)
	})
}

// BR-177, BR-016: a budget on an alias is one on its model.
func TestABudgetOnAnAliasCountsTheModel(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredProvider(t, 1, nil), aliased(t, declaredModel(t, "m1", 2), "short"))
		k := w.key("ci", nil)
		if b := w.budget(`{"name":"b","scope":"org","metric":"tokens","period":"day","limit":500,"model":"short"}`); b.Model != "m1" {
			t.Errorf("model %q", b.Model)
		}
		w.request(k.Secret, "m1", "").settle(10, 1)
		w.request(k.Secret, "short", "").settle(10, 1)
		if b := w.budgets()["b"]; *b.Used != 22 {
			t.Errorf("used %d", *b.Used)
		}
	})
}

// BUD-7: only a system administrator makes or changes what one has set; BR-190:
// on every way.
func TestASystemBudgetIsTheSystemsAlone(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		mine := admin.Actor{Name: "workspace's", Role: admin.Admin, Workspace: "default"}
		body := asJSON[admin.BudgetFields](t, `{"name":"plan limit","scope":"org","metric":"tokens","period":"day","limit":5,"system":true}`)
		_, err := w.BudgetCreate(ctx, mine, admin.BudgetCreateRequest{Body: body})
		refused(t, err, fault.Forbidden)
		b, err := w.BudgetCreate(ctx, system, admin.BudgetCreateRequest{Body: body})
		if err != nil || !b.System {
			t.Fatalf("%+v, %v", b, err)
		}
		for name, try := range map[string]func() error{
			"raise": func() error {
				_, err := w.BudgetRaise(ctx, mine, admin.BudgetRaiseRequest{ID: b.ID, Body: admin.RaiseFields{Amount: admin.Some(int64(5)), Reason: "more"}})
				return err
			},
			"reset": func() error {
				_, err := w.BudgetReset(ctx, mine, admin.BudgetResetRequest{ID: b.ID, Body: admin.ResetFields{Reason: "more"}})
				return err
			},
			"change": func() error {
				_, err := w.BudgetUpdate(ctx, mine, admin.BudgetUpdateRequest{ID: b.ID, Body: asJSON[admin.BudgetFields](t, `{"limit":50}`)})
				return err
			},
			"take": func() error {
				_, err := w.BudgetUpdate(ctx, mine, admin.BudgetUpdateRequest{ID: b.ID, Body: asJSON[admin.BudgetFields](t, `{"system":false}`)})
				return err
			},
			"delete": func() error {
				_, err := w.BudgetDelete(ctx, mine, admin.BudgetRequest{ID: b.ID})
				return err
			},
		} {
			if f := refused(t, try(), fault.Forbidden); f.HTTPStatus() != 403 {
				t.Errorf("%s: %d", name, f.HTTPStatus())
			}
		}
		if b := w.budgets()["plan limit"]; b.Limit != 5 || !b.System {
			t.Errorf("now %+v", b)
		}
		// A key's reset leaves what the system has set.
		k := w.key("ci", nil)
		own := w.budget(`{"name":"own","scope":"key","subject":"ci","metric":"tokens","period":"day","limit":500}`)
		theirs := w.budget(`{"name":"theirs","scope":"key","subject":"ci","metric":"tokens","period":"day","limit":500,"system":true}`)
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		if _, err := w.BudgetDelete(ctx, system, admin.BudgetRequest{ID: b.ID}); err != nil {
			t.Fatal(err)
		}
		w.request(k.Secret, "m1", "").settle(10, 1)
		if _, err := w.KeyReset(ctx, mine, admin.KeyResetRequest{Key: "ci", Body: admin.KeyResetFields{Reason: "again"}}); err != nil {
			t.Fatal(err)
		}
		if list := w.budgets(); *list[own.Name].Used != 0 || *list[theirs.Name].Used != 11 {
			t.Errorf("own %d, theirs %d", *list[own.Name].Used, *list[theirs.Name].Used)
		}
	})
}
