// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/rule"
)

func (w *world) rule(body string) admin.RateLimitAnswer {
	w.t.Helper()
	r, err := w.RateLimitCreate(w.t.Context(), system, admin.RateLimitCreateRequest{Body: asJSON[admin.RateLimitFields](w.t, body)})
	if err != nil {
		w.t.Fatalf("make rate limit %s: %v", body, err)
	}
	return r
}

func (w *world) rules() map[string]admin.RateLimitAnswer {
	w.t.Helper()
	list, err := w.RateLimitList(w.t.Context(), system, admin.RateLimitListRequest{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]admin.RateLimitAnswer{}
	for _, r := range list.RateLimits {
		byName[r.Name] = r
	}
	return byName
}

// RAT-4, RAT-7: every subject with every metric and several windows is made,
// counts, is listed with its live use, changed, reset and deleted.
func TestEveryRateLimitIsListedWithItsLiveUse(t *testing.T) {
	subjects := map[string]string{
		"org": "", "team": "platform", "project": "search", "user": "ada", "api_key": "ci",
	}
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "m2", 3))
		k := w.member()
		for kind, subject := range subjects {
			for _, metric := range []string{"requests", "tokens"} {
				for _, seconds := range []int{60, 3600, 86_400} {
					w.rule(fmt.Sprintf(`{"name":"%s %s %d","subject_kind":"%s","subject_id":%q,"metric":"%s","window_seconds":%d,"limit":1000}`,
						kind, metric, seconds, kind, subject, metric, seconds))
				}
			}
		}
		w.request(k.Secret, "m1", "").settle(100, 50)
		list := w.rules()
		if len(list) != len(subjects)*6 {
			t.Fatalf("%d rules", len(list))
		}
		for name, r := range list {
			want := int64(1)
			if r.Metric == "tokens" {
				want = 150
			}
			if *r.Used != want || *r.Remaining != 1000-want || r.ResetsAt == "" || r.Per != "" || r.Note != "" || !r.Enabled || !r.CountCached {
				t.Errorf("%s: used %d (%+v)", name, *r.Used, r)
			}
			change := func(body string) admin.RateLimitAnswer {
				t.Helper()
				r, err := w.RateLimitUpdate(ctx, system, admin.RateLimitUpdateRequest{ID: r.ID, Body: asJSON[admin.RateLimitFields](t, body)})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return r
			}
			if kept := change(`{"limit":2000}`); *kept.Used != want {
				t.Errorf("%s: another amount starts anew: %+v", name, kept)
			}
			if off := change(`{"enabled":false}`); off.Enabled || off.Used != nil {
				t.Errorf("%s: off: %+v", name, off)
			}
			if on := change(`{"enabled":true}`); *on.Used != 0 {
				t.Errorf("%s: enabled again it starts empty: %+v", name, on)
			}
		}
		w.request(k.Secret, "m1", "").settle(100, 50)
		for name, r := range list {
			if out, err := w.RateLimitReset(ctx, system, admin.RateLimitResetRequest{ID: r.ID, Body: admin.ResetFields{Reason: "r"}}); err != nil || *out.Used != 0 {
				t.Errorf("%s: reset: %+v, %v", name, out, err)
			}
			if anew, err := w.RateLimitUpdate(ctx, system, admin.RateLimitUpdateRequest{ID: r.ID, Body: asJSON[admin.RateLimitFields](t, `{"model":"m2"}`)}); err != nil || *anew.Used != 0 || anew.Model != "m2" {
				t.Errorf("%s: another model: %+v, %v", name, anew, err)
			}
			if _, err := w.RateLimitDelete(ctx, system, admin.RateLimitRequest{ID: name}); err != nil {
				t.Fatal(err)
			}
		}
		if v, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !v.Balanced || len(w.rules()) != 0 {
			t.Errorf("verified: %+v, %v", v, err)
		}
		for _, action := range []string{"create", "update", "reset", "delete"} {
			found := false
			for _, e := range w.audits() {
				found = found || e.Action == "models.rate_limit."+action
			}
			if !found {
				t.Errorf("no audit of %s", action)
			}
		}
	})
}

// RAT-7: N's bounds.
func TestAWrongRateLimitIsRefusedByName(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		h := w.handler(admin.BySocket())
		base := `"metric":"requests","window_seconds":60,"limit":5`
		for _, c := range []struct{ body, param string }{
			{`{"subject_kind":"org",` + base + `}`, "name"},
			{`{"name":"` + strings.Repeat("n", 101) + `","subject_kind":"org",` + base + `}`, "name"},
			{`{"name":"r",` + base + `}`, "subject_kind"},
			{`{"name":"r","subject_kind":"plan",` + base + `}`, "subject_kind"},
			{`{"name":"r","subject_kind":"org","subject_id":"x",` + base + `}`, "subject_id"},
			{`{"name":"r","subject_kind":"tag",` + base + `}`, "subject_id"},
			{`{"name":"r","subject_kind":"api_key","subject_id":"nosuch",` + base + `}`, "subject_id"},
			{`{"name":"r","subject_kind":"org","model":"nosuch",` + base + `}`, "model"},
			{`{"name":"r","subject_kind":"org","metric":"spend","window_seconds":60,"limit":5}`, "metric"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":0,"limit":5}`, "window_seconds"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":86401,"limit":5}`, "window_seconds"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":60,"limit":0}`, "limit"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":60,"limit":1000000000001}`, "limit"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":60,"limit":1e3}`, "limit"},
			{`{"name":"r","subject_kind":"org","metric":"tokens","window_seconds":60,"limit":5,"burst":1}`, "burst"},
		} {
			got, refused := send(h, "POST", admin.Base+"/models/rate-limits", c.body)
			if got.Code != 400 || refused.Detail.Param != c.param {
				t.Errorf("%s: %d %s, want %s", c.body, got.Code, got.Body, c.param)
			}
		}
		if len(w.rules()) != 0 {
			t.Error("something was stored")
		}
	})
}

// RAT-5: the answer says what a tag rule does not do.
func TestATagRuleSaysWhatItIsNot(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		r := w.rule(`{"name":"batch","subject_kind":"tag","subject_id":"batch","metric":"requests","window_seconds":60,"limit":5}`)
		if !strings.Contains(r.Note, "not enforcement") {
			t.Errorf("note %q", r.Note)
		}
		each := w.rule(`{"name":"each","subject_kind":"user","metric":"requests","window_seconds":60,"limit":5}`)
		if each.Per != "subject" || each.Used != nil {
			t.Errorf("each: %+v", each)
		}
	})
}

// RAT-7: the 201st is one too many, also when two come at a time.
func TestAWorkspaceHasTwoHundredRateLimitsAtMost(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		make := func(i int) error {
			_, err := w.RateLimitCreate(ctx, system, admin.RateLimitCreateRequest{Body: asJSON[admin.RateLimitFields](t,
				fmt.Sprintf(`{"name":"r%d","subject_kind":"org","metric":"requests","window_seconds":60,"limit":5}`, i))})
			return err
		}
		for i := range rule.MaxRules - 1 {
			if err := make(i); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		errs := [2]error{}
		for i := range errs {
			group.Go(func() { errs[i] = make(rule.MaxRules + i) })
		}
		group.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("of two at a time: %v, %v", errs[0], errs[1])
		}
		f := refused(t, make(-1), fault.TooManyRules)
		if f.HTTPStatus() != 400 || len(w.rules()) != rule.MaxRules {
			t.Errorf("%+v, %d rules", f, len(w.rules()))
		}
		declared := declaredRule(t, "filed", 7, nil)
		w.applyFails("one too many", declared)
		if _, err := w.RateLimitDelete(ctx, system, admin.RateLimitRequest{ID: "r0"}); err != nil {
			t.Fatal(err)
		}
		w.apply(declared)
	})
}

// A limit on a key ends with it; a plan that is used stays.
func TestWhatALimitNamesIsThere(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		k := w.member()
		w.budget(`{"name":"b","scope":"key","subject":"ci","metric":"tokens","period":"day","limit":5}`)
		w.budget(`{"name":"p","scope":"plan","subject":"intern","metric":"tokens","period":"day","limit":5}`)
		w.rule(`{"name":"r","subject_kind":"api_key","subject_id":"` + k.ID + `","metric":"requests","window_seconds":60,"limit":5}`)
		_, err := w.PlanDelete(ctx, system, admin.PlanRequest{ID: "intern"})
		refused(t, err, fault.Conflict)
		_, err = w.PlanUpdate(ctx, system, admin.PlanUpdateRequest{ID: "intern", Body: admin.PlanFields{Name: admin.Some("renamed")}})
		refused(t, err, fault.Conflict)
		_, err = w.KeyCreate(ctx, system, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k"), Plan: admin.Some("nosuch")}})
		if f := refused(t, err, fault.InvalidRequest); f.Param != "plan" {
			t.Errorf("param %q", f.Param)
		}
		_, err = w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
			KeyTemplate: admin.Some(admin.TemplateFields{Plan: admin.Some("nosuch")}),
		}})
		refused(t, err, fault.InvalidRequest)
		if _, err := w.KeyDelete(ctx, system, admin.KeyRequest{Key: "ci"}); err != nil {
			t.Fatal(err)
		}
		if b, r := w.budgets(), w.rules(); len(b) != 1 || len(r) != 0 {
			t.Errorf("after the key: %v, %v", b, r)
		}
		if out, err := w.PlanDelete(ctx, system, admin.PlanRequest{ID: "intern"}); err != nil || out.Status != "retired" || len(w.budgets()) != 0 {
			t.Errorf("after the plan: %+v, %v", out, err)
		}
	})
}

// SPEC 14: what a plan and its key both limit, both limit.
func TestAPlanIsMadeShownChangedAndDeleted(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "m2", 3))
		k := w.member()
		out, err := w.PlanUpdate(ctx, system, admin.PlanUpdateRequest{ID: "intern", Body: admin.PlanFields{
			AllowedModels: admin.Some([]string{"m2"}), MaxOutputTokens: admin.Some(int64(64)),
		}})
		if err != nil || *out.MaxOutputTokens != 64 || len(*out.AllowedModels) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		if r := w.request(k.Secret, "m1", ""); r.result.Verdict != ledger.Refused || r.result.Refusal.Check.Code != fault.ModelNotAllowed {
			t.Errorf("verdict %d", r.result.Verdict)
		}
		if shown, err := w.PlanShow(ctx, system, admin.PlanRequest{ID: out.ID}); err != nil || shown.Name != "intern" {
			t.Errorf("%+v, %v", shown, err)
		}
		if list, err := w.PlanList(ctx, system, admin.PlanListRequest{}); err != nil || len(list.Plans) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		ask := admin.PlanCreateRequest{IdempotencyKey: "once", Body: admin.PlanFields{Name: admin.Some("other")}}
		for _, replayed := range []bool{false, true} {
			w.clock.Advance(time.Second)
			if out, err := w.PlanCreate(ctx, system, ask); err != nil || out.Replayed != replayed {
				t.Errorf("%+v, %v", out, err)
			}
		}
		_, err = w.PlanCreate(ctx, system, admin.PlanCreateRequest{Body: admin.PlanFields{Name: admin.Some("other")}})
		refused(t, err, fault.Conflict)
	})
}
