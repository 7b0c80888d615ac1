// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/tenant"
)

func TestAKeyIsMadeFoundChangedAndDeleted(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		made := w.key("ci", func(f *admin.KeyFields) {
			f.Team, f.User = admin.Some("platform"), admin.Some("ada")
			f.Caps = admin.Some(admin.CapFields{Day: admin.Some("5"), SevenDay: admin.Some("20.000000001")})
			f.Limits = admin.Some(admin.RunFields{RPM: admin.Some(int64(60))})
		})
		if !strings.HasPrefix(made.Secret, made.Prefix) || made.Status != "active" || made.Caps.SevenDay != "20.000000001" {
			t.Fatalf("made %+v", made)
		}
		k, snapshot, err := w.directory.Identify(ctx, made.Secret)
		if err != nil || k.ID != made.ID || snapshot.Workspace.Name != "default" {
			t.Fatalf("identified %+v, %v", k, err)
		}
		for _, ref := range []string{made.ID, "ci"} {
			shown, err := w.KeyShow(ctx, system, admin.KeyRequest{Key: ref})
			if err != nil || shown.ID != made.ID || shown.Secret != "" || shown.Team != "platform" {
				t.Fatalf("shown %+v, %v", shown, err)
			}
		}
		changed, err := w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: "ci", Body: admin.KeyFields{
			Name: admin.Some("ci 2"), Team: admin.Null[string](), Caps: admin.Some(admin.CapFields{Day: admin.Null[string]()}),
			Limits: admin.Some(admin.RunFields{RPM: admin.Some(int64(0)), Concurrency: admin.Some(int64(4))}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if changed.Name != "ci 2" || changed.Team != "" || changed.User != "ada" || changed.Caps.Day != "" ||
			changed.Caps.SevenDay != "20.000000001" || *changed.Limits.RPM != 0 || *changed.Limits.Concurrency != 4 {
			t.Fatalf("changed %+v", changed)
		}
		disabled, err := w.KeyDisable(ctx, system, admin.KeyRequest{Key: "ci 2"})
		if err != nil || disabled.Status != "disabled" {
			t.Fatalf("disabled %+v, %v", disabled, err)
		}
		if k, _, err := w.directory.Identify(ctx, made.Secret); err != nil || !k.Disabled {
			t.Fatalf("a disabled key is known and refused by the decision: %+v, %v", k, err)
		}
		if enabled, err := w.KeyEnable(ctx, system, admin.KeyRequest{Key: made.ID}); err != nil || enabled.Status != "active" {
			t.Fatalf("enabled %+v, %v", enabled, err)
		}
		if deleted, err := w.KeyDelete(ctx, system, admin.KeyRequest{Key: made.ID}); err != nil || deleted.Status != "retired" {
			t.Fatalf("deleted %+v, %v", deleted, err)
		}
		w.clock.Advance(time.Microsecond)
		if _, _, err := w.directory.Identify(ctx, made.Secret); !errors.Is(err, directory.ErrUnknownKey) {
			t.Fatalf("a deleted key: %v", err)
		}
		_, err = w.KeyEnable(ctx, system, admin.KeyRequest{Key: made.ID})
		refused(t, err, fault.NotFound)
		if shown, err := w.KeyShow(ctx, system, admin.KeyRequest{Key: made.ID}); err != nil || shown.Status != "retired" {
			t.Fatalf("shown %+v, %v", shown, err)
		}
		w.key("ci 2", nil) // its name is free again
	})
}

func TestAChangeThatChangesNothingIsNoChange(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		k := w.key("ci", nil)
		before := len(w.audits())
		same, err := w.KeyUpdate(t.Context(), system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{Team: admin.Null[string]()}})
		if err != nil || same.Version != k.Version || len(w.audits()) != before {
			t.Fatalf("version %d after %d, %v", same.Version, k.Version, err)
		}
	})
}

// KEY-4: the template fills what was left out; an explicit 0 or null is a value,
// and a later template changes no existing key.
func TestANewKeyCopiesTheTemplateWhereItsMakerLeftAValueOut(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		template := func(rpm int64) {
			t.Helper()
			_, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
				KeyTemplate: admin.Some(admin.TemplateFields{
					Caps:   admin.Some(admin.CapFields{Day: admin.Some("10")}),
					Limits: admin.Some(admin.RunFields{RPM: admin.Some(rpm), TPM: admin.Some(int64(500))}),
				}),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		template(60)
		copied := w.key("copied", nil)
		if *copied.Limits.RPM != 60 || copied.Caps.Day != "10" || copied.FromTemplate["limits.rpm"] != "2026-03-04" {
			t.Fatalf("copied %+v", copied)
		}
		explicit := w.key("explicit", func(f *admin.KeyFields) {
			f.Caps = admin.Null[admin.CapFields]()
			f.Limits = admin.Some(admin.RunFields{RPM: admin.Some(int64(0)), TPM: admin.Null[int64]()})
		})
		if *explicit.Limits.RPM != 0 || explicit.Limits.TPM != nil || explicit.Caps.Day != "" || len(explicit.FromTemplate) != 0 {
			t.Fatalf("explicit %+v", explicit)
		}
		template(30)
		if shown, err := w.KeyShow(ctx, system, admin.KeyRequest{Key: "copied"}); err != nil || *shown.Limits.RPM != 60 {
			t.Fatalf("shown %+v, %v", shown, err)
		}
	})
}

// BR-190 and RUN-4: every path that can raise a limit runs the same check.
func TestNoPathSetsAKeyAboveItsWorkspace(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		ceiling := func(rpm int64) {
			t.Helper()
			_, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
				Limits: admin.Some(admin.RunFields{RPM: admin.Some(rpm)}),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		ceiling(10)
		limit := func(rpm int64) admin.Option[admin.RunFields] {
			return admin.Some(admin.RunFields{RPM: admin.Some(rpm)})
		}
		_, err := w.KeyCreate(ctx, system, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k"), Limits: limit(11)}})
		if f := refused(t, err, fault.InvalidRequest); f.Param != "limits.rpm" {
			t.Errorf("param %q", f.Param)
		}
		k := w.key("k", func(f *admin.KeyFields) { f.Limits = limit(10) })
		_, err = w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{Limits: limit(1000)}})
		refused(t, err, fault.InvalidRequest)
		_, err = w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
			KeyTemplate: admin.Some(admin.TemplateFields{Limits: limit(11)}),
		}})
		refused(t, err, fault.InvalidRequest)
		high := int64(11)
		declared := declaredKey(t, "filed", "a-secret-of-the-file-1", 5, func(k *tenant.Key) { k.Limits.RPM = &high })
		declared.Given = map[string]bool{"limits.rpm": true}
		if _, err := w.Apply(ctx, "file", []admin.Declared{declared}, "weir.yaml"); err == nil || !strings.Contains(err.Error(), "above the workspace's 10") {
			t.Errorf("the file: %v", err)
		}
		ceiling(5) // lowering it later is allowed, and leaves other changes of the key alone
		if _, err := w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{Team: admin.Some("a")}}); err != nil {
			t.Error(err)
		}
		_, err = w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{Limits: limit(9)}})
		refused(t, err, fault.InvalidRequest)
	})
}

// BR-054, CAP-2, MON-4, ADM-5: 400, the field is named, nothing is stored.
func TestAWrongKeyIsRefusedByNameAndNotStored(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		for _, c := range []struct{ body, param string }{
			{`{"name":"k","caps":{"day":"-7"}}`, "caps.day"},
			{`{"name":"k","caps":{"day":"NaN"}}`, "caps.day"},
			{`{"name":"k","caps":{"day":"+Inf"}}`, "caps.day"},
			{`{"name":"k","caps":{"day":1e309}}`, "caps.day"},
			{`{"name":"k","caps":{"day":1.5}}`, "caps.day"},
			{`{"name":"k","caps":{"day":"10.1234567891"}}`, "caps.day"},
			{`{"name":"k","caps":{"day":"1000000001"}}`, "caps.day"},
			{`{"name":"k","caps":{"day":"5","seven_day":"4"}}`, "caps.seven_day"},
			{`{"name":"k","caps":{"daily":"5"}}`, "caps.daily"},
			{`{"name":"k","limits":{"rpm":-1}}`, "limits.rpm"},
			{`{"name":"k","limits":{"rpm":"10"}}`, "limits.rpm"},
			{`{"name":"k","limits":{"rpm":1.0}}`, "limits.rpm"},
			{`{"name":"k","allowed_models":"m"}`, "allowed_models"},
			{`{"name":"k","allowed_models":["a*b"]}`, "allowed_models[0]"},
			{`{"name":"k","expires_at":"tomorrow"}`, "expires_at"},
			{`{"name":"k","secret":"weir_mine"}`, "secret"},
			{`{"name":""}`, "name"},
			{`{"name":"line\nbreak"}`, "name"},
			{`{}`, "name"},
			{`{"name":"k","name":"l"}`, ""},
			{`[]`, ""},
			{`{`, ""},
		} {
			var r admin.KeyCreateRequest
			if err := r.Body.UnmarshalJSON([]byte(c.body)); err != nil {
				t.Fatal(err)
			}
			_, err := w.KeyCreate(t.Context(), system, r)
			if f := refused(t, err, fault.InvalidRequest); f.Param != c.param {
				t.Errorf("%s: param %q, want %q (%s)", c.body, f.Param, c.param, f.Message)
			}
		}
		if list, err := w.KeyList(t.Context(), system, admin.KeyListRequest{}); err != nil || len(list.Keys) != 0 {
			t.Errorf("stored %+v, %v", list.Keys, err)
		}
	})
}

// BR-189 and KEY-5: an empty list is none, an absent one all; neither widens.
func TestAnEmptyListOfModelsAllowsNone(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "m2", 3))
		for name, c := range map[string]struct {
			list admin.Option[[]string]
			want []string
		}{
			"absent": {admin.Option[[]string]{}, []string{"m1", "m2"}},
			"null":   {admin.Null[[]string](), []string{"m1", "m2"}},
			"empty":  {admin.Some([]string{}), nil},
			"one":    {admin.Some([]string{"m2"}), []string{"m2"}},
		} {
			made := w.key(name, func(f *admin.KeyFields) { f.AllowedModels = c.list })
			k, snapshot, err := w.directory.Identify(t.Context(), made.Secret)
			if err != nil {
				t.Fatal(err)
			}
			if got := snapshot.Models(k); !slices.Equal(got, c.want) {
				t.Errorf("%s: may call %v, want %v", name, got, c.want)
			}
		}
	})
}

// BUD-6: with a store that keeps nothing no money limit is accepted.
func TestAStoreThatKeepsNothingTakesNoMoneyLimit(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.options.Durable = false
		s := admin.New(w.options)
		day := admin.Some(admin.CapFields{Day: admin.Some("5")})
		_, err := s.KeyCreate(ctx, system, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k"), Caps: day}})
		refused(t, err, fault.InvalidRequest)
		k := w.key("k", nil)
		_, err = s.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{Caps: day}})
		refused(t, err, fault.InvalidRequest)
		for _, body := range []admin.WorkspaceFields{
			{Funds: admin.Some("prepaid")},
			{Funds: admin.Some("prepaid_hold")},
			{KeyTemplate: admin.Some(admin.TemplateFields{Caps: day})},
		} {
			_, err = s.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: body})
			refused(t, err, fault.InvalidRequest)
		}
		prepaid := declaredWorkspace(t, "default", 3, func(w *tenant.Workspace) { w.Funds = tenant.Prepaid })
		if _, err := s.Apply(ctx, "file", []admin.Declared{prepaid}, "weir.yaml"); err == nil || !strings.Contains(err.Error(), "keeps nothing") {
			t.Errorf("the file: %v", err)
		}
		// Unlimited is no limit.
		_, err = s.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: k.ID, Body: admin.KeyFields{
			Caps: admin.Some(admin.CapFields{Day: admin.Some("0")}),
		}})
		if err != nil {
			t.Error(err)
		}
	})
}

// BR-196 and ADM-1: what belongs to another workspace is not there.
func TestAForeignKeyIsNotFound(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredWorkspace(t, "other", 1, nil))
		mine := w.key("ci", nil)
		foreign := admin.Actor{Name: "other's", Role: admin.Admin, Workspace: "other"}
		for _, ref := range []string{mine.ID, "ci"} {
			_, err := w.KeyShow(ctx, foreign, admin.KeyRequest{Key: ref})
			refused(t, err, fault.NotFound)
			_, err = w.KeyDelete(ctx, foreign, admin.KeyRequest{Key: ref})
			refused(t, err, fault.NotFound)
			_, err = w.KeyLimits(ctx, foreign, admin.KeyRequest{Key: ref})
			refused(t, err, fault.NotFound)
			_, err = w.RequestList(ctx, foreign, admin.RequestListRequest{Key: ref})
			refused(t, err, fault.NotFound)
		}
		if list, err := w.KeyList(ctx, foreign, admin.KeyListRequest{}); err != nil || len(list.Keys) != 0 {
			t.Errorf("listed %+v, %v", list, err)
		}
		_, err := w.KeyList(ctx, admin.Actor{Name: "s", Role: admin.System, Workspace: "nowhere"}, admin.KeyListRequest{})
		refused(t, err, fault.NotFound)
	})
}

// BR-203 and ADM-3: neither a secret nor its hash is in the audit.
func TestTheAuditHoldsNoSecret(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		made := w.key("ci", nil)
		rotated, err := w.KeyRotate(ctx, system, admin.KeyRotateRequest{Key: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.KeyUpdate(ctx, system, admin.KeyUpdateRequest{Key: "ci", Body: admin.KeyFields{User: admin.Some("ada")}}); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(w.audits())
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{made.Secret, rotated.Secret} {
			hash := tenant.HashSecret(secret)
			for _, form := range []string{secret, secret[len(made.Prefix):], hex.EncodeToString(hash[:])} {
				if strings.Contains(string(text), form) {
					t.Errorf("the audit shows %s", form)
				}
			}
		}
		last := w.audits()[0]
		if last.Actor != "test" || last.Action != "keys.update" || last.ID != made.ID || strings.Contains(string(last.Before), "ada") || !strings.Contains(string(last.After), "ada") {
			t.Errorf("last entry %+v", last)
		}
	})
}

// EFF-1: every limit of a key, whence it comes, and its state.
func TestEveryLimitOfAKeyIsListed(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		_, err := w.WorkspaceUpdate(t.Context(), system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
			Limits: admin.Some(admin.RunFields{Concurrency: admin.Some(int64(50))}), TimeZone: admin.Some("Europe/Berlin"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.key("ci", func(f *admin.KeyFields) {
			f.Caps = admin.Some(admin.CapFields{Day: admin.Some("5")})
			f.Limits = admin.Some(admin.RunFields{RPM: admin.Some(int64(60))})
		})
		view, err := w.KeyLimits(t.Context(), system, admin.KeyRequest{Key: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, l := range view.Limits {
			got[l.Name+" of "+l.Scope] = l.Amount + " " + l.Remaining + " " + l.Origin
		}
		for name, want := range map[string]string{
			"day cap of key": "5 5 key", "rpm of key": "60 60 key", "concurrency of workspace": "50 50 workspace",
		} {
			if got[name] != want {
				t.Errorf("%s: %q, want %q (all: %v)", name, got[name], want, got)
			}
		}
	})
}

func TestAListGoesOnWhereItEnded(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		want := []string{"a", "b/c", "d e", "f", "g"}
		for _, name := range want {
			w.key(name, nil)
		}
		var got []string
		cursor := ""
		for {
			page, err := w.KeyList(t.Context(), system, admin.KeyListRequest{Limit: 2, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range page.Keys {
				got = append(got, k.Name)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v", got)
		}
		for _, r := range []admin.KeyListRequest{{Limit: -1}, {Limit: 1001}, {Cursor: "%"}} {
			_, err := w.KeyList(t.Context(), system, r)
			refused(t, err, fault.InvalidRequest)
		}
	})
}
