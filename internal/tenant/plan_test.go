// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/tenant"
)

func TestAPlanComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &tenant.Plan{
			AllowedModels:   rapid.SampledFrom([]*[]string{nil, {}, {"gpt", "acme/*"}}).Draw(t, "models"),
			MaxOutputTokens: rapid.SampledFrom([]*int64{nil, number(0), number(1), number(tenant.MaxTokens)}).Draw(t, "tokens"),
		}
		body, err := tenant.EncodePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodePlan(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", body, diff)
		}
	})
}

func TestAPlanIsReadStrictly(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`: nil,
		`{"allowed_models":[],"max_output_tokens":0}`:         nil,
		`{"allowed_models":null,"max_output_tokens":null}`:    nil,
		`{"allowed_models":["*"],"max_output_tokens":-1}`:     {"max_output_tokens", "allowed_models[0]"},
		`{"max_output_tokens":1000000001,"limits":{"rpm":1}}`: {"max_output_tokens", "limits"},
		`{"budgets":[]}`:           {"budgets"},
		`{"allowed_models":"gpt"}`: {"allowed_models"},
		`[]`:                       {""},
	} {
		n, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = new(tenant.Plan).Read(n)
		if diff := cmp.Diff(want, paths(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if _, err := tenant.DecodePlan([]byte(`{"caps":{}}`)); err == nil {
		t.Error("a plan with caps is accepted")
	}
	for name, want := range map[string]bool{"intern": true, "a@b+c:d_e.f-g": true, strings.Repeat("a", 128): true, "in tern": false, strings.Repeat("a", 129): false, "a/b": false} {
		p := &tenant.Plan{Name: name}
		if err := p.Validate(); (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", name, err, want)
		}
	}
}

// KEY-7: a key that needs a user must have a way to one.
func TestAKeyThatNeedsAUserHasAWayToOne(t *testing.T) {
	templated := tenant.NewWorkspace("w", "w")
	templated.KeyTemplate = &tenant.Template{AttributeUsers: tenant.AttributeHeader}
	for _, c := range []struct {
		key  tenant.Key
		w    *tenant.Workspace
		want []string
	}{
		{tenant.Key{RequireUser: true}, nil, []string{"require_user"}},
		{tenant.Key{RequireUser: true}, tenant.NewWorkspace("w", "w"), []string{"require_user"}},
		{tenant.Key{RequireUser: true}, templated, nil},
		{tenant.Key{RequireUser: true, User: "ada"}, nil, nil},
		{tenant.Key{RequireUser: true, AttributeUsers: tenant.AttributeBody}, nil, nil},
		{tenant.Key{AttributeUsers: tenant.AttributeHeader}, nil, nil},
		{tenant.Key{AttributeUsers: "cookie"}, nil, []string{"attribute_users"}},
		{tenant.Key{Plan: "intern"}, nil, nil},
	} {
		if diff := cmp.Diff(c.want, paths(t, c.key.Validate(c.w))); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.key, diff)
		}
	}
}

// KEY-4, KEY-7: they are copied like every other field.
func TestATemplateGivesPlanAndAttributionToo(t *testing.T) {
	template := &tenant.Template{Plan: "intern", AttributeUsers: tenant.AttributeBody, RequireUser: true}
	for text, want := range map[string]tenant.Key{
		`{}`: {Plan: "intern", AttributeUsers: tenant.AttributeBody, RequireUser: true},
		`{"plan":null,"attribute_users":null,"require_user":false}`: {},
		`{"plan":"own","attribute_users":"header"}`:                 {Plan: "own", AttributeUsers: tenant.AttributeHeader, RequireUser: true},
	} {
		k := &tenant.Key{}
		k.ApplyTemplate(template, read(t, k, text), "2026-03-08")
		copies := k.FromTemplate
		if k.FromTemplate = nil; fmt.Sprintf("%+v", *k) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: key is %+v, want %+v", text, *k, want)
		}
		again := &tenant.Key{}
		k.FromTemplate = copies
		again.KeepCopies(k, map[string]bool{"plan": true})
		if again.Plan != "" || again.RequireUser != (copies["require_user"] != "") {
			t.Errorf("%s: kept %+v", text, again)
		}
		comesBack(t, k)
	}
}

func comesBack(t *testing.T, k *tenant.Key) {
	t.Helper()
	body, err := tenant.EncodeKey(k)
	if err != nil {
		t.Fatal(err)
	}
	back, err := tenant.DecodeKey(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if diff := cmp.Diff(k, back); diff != "" {
		t.Errorf("%s (-want +got):\n%s", body, diff)
	}
}

// BUD-10, KEY-7: read, bounded and stored; what is the default is not stored, so
// that a workspace of an earlier version is the same workspace.
func TestAWorkspaceSaysWhatIsHeldAndHowManyUsersThereAre(t *testing.T) {
	plain, err := tenant.EncodeWorkspace(tenant.NewWorkspace("", ""))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		`{"hold_output_tokens":0,"on_short":"refuse","shrink_floor":1024,"max_users":1000000}`: nil,
		`{"hold_output_tokens":4096,"on_short":"shrink","shrink_floor":1,"max_users":1}`:       nil,
		`{"hold_output_tokens":1000000000,"shrink_floor":1000000000,"max_users":1000000000}`:   nil,
		`{"hold_output_tokens":null}`: nil,
		`{"hold_output_tokens":-1,"on_short":"cut","shrink_floor":0,"max_users":0}`:                               {"hold_output_tokens", "on_short", "shrink_floor", "max_users"},
		`{"hold_output_tokens":1000000001,"on_short":null,"shrink_floor":1000000001,"max_users":1000000001}`:      {"hold_output_tokens", "on_short", "shrink_floor", "max_users"},
		`{"cache":"on","remote_rate_limit":{},"webhooks":[],"local_rate_limit":{},"key_template":{"budgets":[]}}`: {"key_template.budgets", "cache", "remote_rate_limit", "webhooks", "local_rate_limit"},
	} {
		n, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w := tenant.NewWorkspace("", "")
		_, err = w.Read(n)
		if diff := cmp.Diff(want, paths(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if err != nil {
			continue
		}
		body, err := tenant.EncodeWorkspace(w)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodeWorkspace(body)
		if diff := cmp.Diff(w, back); err != nil || diff != "" {
			t.Errorf("%s became %s: %v\n%s", text, body, err, diff)
		}
		if same := cmp.Equal(w, tenant.NewWorkspace("", "")); same != (string(body) == string(plain)) {
			t.Errorf("%s is stored as %s", text, body)
		}
	}
	for want, change := range map[string]func(w *tenant.Workspace){
		"hold_output_tokens": func(w *tenant.Workspace) { w.HoldOutputTokens = -1 },
		"on_short":           func(w *tenant.Workspace) { w.OnShort = "" },
		"shrink_floor":       func(w *tenant.Workspace) { w.ShrinkFloor = 0 },
		"max_users":          func(w *tenant.Workspace) { w.MaxUsers = tenant.MaxUsersBound + 1 },
	} {
		w := tenant.NewWorkspace("", "")
		change(w)
		if diff := cmp.Diff([]string{want}, paths(t, w.Validate())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
}

func FuzzReadPlan(f *testing.F) {
	for _, seed := range []string{`{}`, `{"allowed_models":["a/*"],"max_output_tokens":5}`, `{"allowed_models":null,"budgets":[]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		p := &tenant.Plan{}
		if _, err := p.Read(n); err != nil {
			return
		}
		body, err := tenant.EncodePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodePlan(body)
		if diff := cmp.Diff(p, back); err != nil || diff != "" {
			t.Fatalf("%s became %s: %v\n%s", text, body, err, diff)
		}
	})
}
