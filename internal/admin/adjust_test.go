// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
)

// RES-9: a correction is in the windows of the request's admission, audited,
// booked once, and the books balance.
func TestARequestIsAdjustedInTheWindowsOfItsAdmission(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		k := w.key("ci", nil)
		w.budget(`{"name":"month","scope":"org","metric":"spend","period":"month","limit_usd":"5"}`)
		w.budget(`{"name":"day","scope":"user","metric":"tokens","period":"day","limit":500,"subject":"ada"}`)
		w.budget(`{"name":"tokens","scope":"key","metric":"tokens","period":"month","limit":500,"subject":"ci"}`)
		w.budget(`{"name":"today","scope":"org","metric":"spend","period":"day","limit_usd":"5"}`)
		r := w.request(k.Secret, "m1", "")
		adjust := func(key, body string) (admin.RequestAnswer, error) {
			return w.RequestAdjust(ctx, system, admin.RequestAdjustRequest{
				ID: r.id.String(), IdempotencyKey: key, Body: asJSON[admin.AdjustFields](t, body),
			})
		}
		_, err := adjust("", `{"spend":"0.001","reason":"r"}`)
		refused(t, err, fault.Conflict) // it runs
		r.settle(100, 50)               // $0.0006, 150 tokens
		w.clock.Advance(24 * time.Hour)
		for _, replayed := range []bool{false, true} {
			out, err := adjust("once", `{"spend":"0.001","tokens":100,"reason":"the provider's bill"}`)
			if err != nil || out.Replayed != replayed || len(out.Events) != 2 {
				t.Fatalf("adjusted: %+v, %v", out, err)
			}
			if e := out.Events[1]; e.Spend != "0.0004" || e.Tokens != -50 || e.Reason != "the provider's bill" || e.Actor != "test" {
				t.Errorf("event %+v", e)
			}
		}
		list := w.budgets()
		if list["month"].UsedUSD != "0.001" || *list["tokens"].Used != 100 || list["today"].UsedUSD != "0" || *list["day"].Used != 0 {
			t.Errorf("budgets: %+v", list)
		}
		// The same again under another key finds nothing to correct.
		if out, err := adjust("twice", `{"spend":"0.001","reason":"again"}`); err != nil || len(out.Events) != 2 {
			t.Errorf("%+v, %v", out, err)
		}
		if out, err := adjust("", `{"spend":"0","tokens":0,"reason":"a gift"}`); err != nil || len(out.Events) != 3 {
			t.Errorf("%+v, %v", out, err)
		}
		if usage, err := w.Usage(ctx, system, admin.UsageRequest{}); err != nil || usage.Total.Spend != "0" || usage.Total.Tokens != 0 {
			t.Errorf("usage: %+v, %v", usage.Total, err)
		}
		entry := w.audits()[0]
		if entry.Action != "requests.adjust" || entry.ID != r.id.String() || !strings.Contains(string(entry.After), "a gift") {
			t.Errorf("audit %+v %s", entry, entry.After)
		}
		if v, err := w.Verify(ctx, system, admin.VerifyRequest{}); err != nil || !v.Balanced {
			t.Errorf("verified: %+v, %v", v, err)
		}
		for _, body := range []string{
			`{"spend":"1"}`, `{"reason":"r"}`, `{"spend":"-1","reason":"r"}`, `{"tokens":-1,"reason":"r"}`, `{"spend":1.5,"reason":"r"}`, `{"spend":"1","reason":"r","x":1}`,
		} {
			_, err := adjust("", body)
			refused(t, err, fault.InvalidRequest)
		}
		foreign := admin.Actor{Name: "other's", Role: admin.Admin, Workspace: "other"}
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredWorkspace(t, "other", 3, nil))
		_, err = w.RequestAdjust(ctx, foreign, admin.RequestAdjustRequest{ID: r.id.String(), Body: asJSON[admin.AdjustFields](t, `{"spend":"1","reason":"r"}`)})
		refused(t, err, fault.NotFound)
	})
}
