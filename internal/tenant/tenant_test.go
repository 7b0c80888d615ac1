// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

func number(n int64) *int64 { return &n }

func dollars(n int64) *money.Nanos {
	amount := money.Nanos(n) * money.Dollar
	return &amount
}

// paths are where an error says that something is wrong.
func paths(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var problems document.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v, no document.Problems", err)
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.Path)
	}
	return all
}

// RUN-5.
func TestALayerIsTheWorkspacesValueElseItsTypesElseUnlimited(t *testing.T) {
	defaults := map[string]tenant.RuntimeLimits{tenant.Personal: {RPM: number(60)}, tenant.Enterprise: {RPM: number(5000), TPM: number(0)}}
	for _, c := range []struct {
		kind   string
		own    *int64
		metric tenant.Metric
		value  int64
		origin string
	}{
		{tenant.Personal, nil, tenant.RPM, 60, tenant.FromTypeDefault},
		{tenant.Enterprise, nil, tenant.RPM, 5000, tenant.FromTypeDefault},
		{tenant.Enterprise, nil, tenant.TPM, 0, tenant.FromTypeDefault},
		{tenant.Enterprise, nil, tenant.Concurrency, 0, tenant.Unlimited},
		{tenant.Personal, number(7), tenant.RPM, 7, tenant.FromWorkspace},
		{tenant.Personal, number(0), tenant.RPM, 0, tenant.FromWorkspace},
	} {
		w := tenant.NewWorkspace("w", "w")
		w.Type, w.TypeDefaults, w.Limits.RPM = c.kind, defaults, c.own
		if value, origin := w.Layer(c.metric); value != c.value || origin != c.origin {
			t.Errorf("%s %s: %d, %s; want %d, %s", c.kind, c.metric, value, origin, c.value, c.origin)
		}
	}
}

// CAP-3.
func TestTheZonesEpochGrowsOnlyWhenTheZoneChanges(t *testing.T) {
	before := tenant.NewWorkspace("id", "w")
	before.ZoneEpoch, before.Zone = 3, "Asia/Kathmandu"
	for zone, want := range map[string]uint32{"Asia/Kathmandu": 3, "": 4, "Europe/Berlin": 4} {
		after := tenant.NewWorkspace("", "w")
		after.Zone = zone
		if after.Adopt(before); after.ZoneEpoch != want || after.ID != "id" {
			t.Errorf("%q: epoch %d, want %d", zone, after.ZoneEpoch, want)
		}
	}
}

// CAP-2: among set values day ≤ 7-day ≤ 30-day; nil and 0 are unset.
func TestCapsAreAcceptedExactlyWhenTheSetOnesAscend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *money.Nanos {
			return rapid.SampledFrom([]*money.Nanos{nil, dollars(0), dollars(1), dollars(2), dollars(3)}).Draw(t, name)
		}
		caps := tenant.Caps{Day: draw("day"), SevenDay: draw("seven"), ThirtyDay: draw("thirty")}
		ascend, last := true, money.Nanos(0)
		for _, amount := range []*money.Nanos{caps.Day, caps.SevenDay, caps.ThirtyDay} {
			if amount != nil && *amount > 0 {
				ascend, last = ascend && *amount >= last, max(last, *amount)
			}
		}
		k := tenant.Key{Name: "k", Caps: caps}
		if err := k.Validate(nil); (err == nil) != ascend {
			t.Errorf("%+v: %v, want accepted %t", caps, err, ascend)
		}
		template := tenant.Template{Caps: caps}
		if err := template.Validate(nil); (err == nil) != ascend {
			t.Errorf("template %+v: %v, want accepted %t", caps, err, ascend)
		}
	})
}

// RUN-4: both positive, and the key's above the workspace's.
func TestAKeysPositiveLimitStaysBelowTheWorkspacesPositiveOne(t *testing.T) {
	for _, m := range tenant.Metrics() {
		for _, own := range []*int64{nil, number(0), number(9), number(10), number(11)} {
			for _, ceiling := range []*int64{nil, number(0), number(10)} {
				w := tenant.NewWorkspace("w", "w")
				k := tenant.Key{Name: "k"}
				set(&w.Limits, m, ceiling)
				set(&k.Limits, m, own)
				want := []string(nil)
				if own != nil && *own == 11 && ceiling != nil && *ceiling == 10 {
					want = []string{"limits." + string(m)}
				}
				if diff := cmp.Diff(want, paths(t, k.Validate(w))); diff != "" {
					t.Errorf("%s: key %v, workspace %v (-want +got):\n%s", m, own, ceiling, diff)
				}
			}
		}
	}
}

func set(l *tenant.RuntimeLimits, m tenant.Metric, n *int64) {
	switch m {
	case tenant.RPM:
		l.RPM = n
	case tenant.TPM:
		l.TPM = n
	case tenant.Concurrency:
		l.Concurrency = n
	}
}

// full has a value in each field that a template can hold, but the plan.
func full() *tenant.Template {
	return &tenant.Template{
		Team: "team", Project: "project", AllowedModels: &[]string{"gpt", "acme/*"}, MaxOutputTokens: number(100),
		Caps:   tenant.Caps{Day: dollars(1), SevenDay: dollars(2), ThirtyDay: dollars(3)},
		Limits: tenant.RuntimeLimits{RPM: number(1), TPM: number(2), Concurrency: number(3)},
	}
}

var templateFields = []string{
	"team", "project", "allowed_models", "max_output_tokens", "caps.day", "caps.seven_day", "caps.thirty_day", "limits.rpm", "limits.tpm", "limits.concurrency",
}

func read(t *testing.T, k *tenant.Key, text string) map[string]bool {
	t.Helper()
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	given, err := k.Read(n)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return given
}

// KEY-4.
func TestANewKeyCopiesExactlyWhatItsMakerLeftOut(t *testing.T) {
	for _, c := range []struct {
		text string
		own  []string // what is not copied
	}{
		{`{}`, nil},
		{`{"caps":{}}`, nil},
		{`{"caps":{"day":"0"},"limits":{"rpm":0},"max_output_tokens":0}`, []string{"caps.day", "limits.rpm", "max_output_tokens"}},
		{`{"caps":{"day":null},"limits":{"tpm":null},"allowed_models":null,"team":null}`, []string{"caps.day", "limits.tpm", "allowed_models", "team"}},
		{`{"caps":null,"limits":null}`, []string{"caps.day", "caps.seven_day", "caps.thirty_day", "limits.rpm", "limits.tpm", "limits.concurrency"}},
		{`{"allowed_models":[],"project":"mine"}`, []string{"allowed_models", "project"}},
	} {
		k := &tenant.Key{Name: "k"}
		k.ApplyTemplate(full(), read(t, k, c.text), "2026-03-08")
		want := map[string]string{}
		for _, field := range templateFields {
			want[field] = "2026-03-08"
		}
		for _, field := range c.own {
			delete(want, field)
		}
		if diff := cmp.Diff(want, k.FromTemplate); diff != "" {
			t.Errorf("%s: copies (-want +got):\n%s", c.text, diff)
		}
	}
}

// KEY-4: null and 0 are values.
func TestAnExplicitNullStaysUnlimited(t *testing.T) {
	k := &tenant.Key{Name: "k"}
	k.ApplyTemplate(full(), read(t, k, `{"caps":{"day":null},"limits":{"rpm":0},"allowed_models":null}`), "2026-03-08")
	if k.Caps.Day != nil || *k.Limits.RPM != 0 || k.AllowedModels != nil || *k.Caps.SevenDay != *dollars(2) {
		t.Errorf("key is %+v", k)
	}
}

// KEY-4: changing the template later changes no existing key; a field that the
// owner takes over is no copy any more.
func TestAKeyKeepsItsCopiesUntilAFieldIsGiven(t *testing.T) {
	first := &tenant.Key{Name: "k"}
	first.ApplyTemplate(full(), read(t, first, `{"team":"mine"}`), "2026-03-08")
	first.ID, first.Prefix = "id", "weir_abcd"
	again := &tenant.Key{Name: "k"}
	again.KeepCopies(first, read(t, again, `{"caps":{"day":"9"}}`))
	if again.ID != "id" || again.Prefix != "weir_abcd" || again.Team != "" || *again.Caps.Day != *dollars(9) || *again.Limits.RPM != 1 {
		t.Errorf("key is %+v", again)
	}
	if _, copied := again.FromTemplate["caps.day"]; copied || again.FromTemplate["limits.rpm"] != "2026-03-08" {
		t.Errorf("copies are %v", again.FromTemplate)
	}
	read(t, again, `{"limits":{"rpm":5}}`)
	if _, copied := again.FromTemplate["limits.rpm"]; copied || *again.Limits.RPM != 5 || *again.Limits.TPM != 2 {
		t.Errorf("after a change: %+v", again)
	}
}

// KEY-2: judged by the decision's instant.
func TestAKeyEndsAtItsInstant(t *testing.T) {
	k := &tenant.Key{Name: "k"}
	read(t, k, `{"expires_at":"2026-01-01T01:00:00+01:00"}`)
	const newYear = 1767225600_000000
	if k.ExpiresAt != newYear || !k.Active(newYear-1) || k.Active(newYear) {
		t.Errorf("expires at %d", k.ExpiresAt)
	}
	if k.Disabled = true; k.Active(0) {
		t.Error("a disabled key is active")
	}
}

// KEY-5, BR-169, BR-170, BR-173.
func TestAListAllowsItsNamesItsPrefixesAndTheNameThatWasUsed(t *testing.T) {
	for _, c := range []struct {
		list      []string
		model     string
		requested []string
		want      bool
	}{
		{nil, "gpt", nil, true},
		{[]string{}, "gpt", []string{"gpt"}, false},
		{[]string{"gpt"}, "gpt", nil, true},
		{[]string{"gpt"}, "gpt-4", nil, false},
		{[]string{"gpt-4"}, "gpt", nil, false},
		// BR-169
		{[]string{"acme/*"}, "acme/x", nil, true},
		{[]string{"acme/*"}, "acme/y/x", nil, true},
		{[]string{"acme/*"}, "acmez/x", nil, false},
		{[]string{"acme/*"}, "acme", nil, false},
		{[]string{"acme/*"}, "acme/", nil, false},
		{[]string{"acme/*"}, "/acme/x", nil, false},
		{[]string{"acme/*"}, "x/acme/y", nil, false},
		// a prefix matches model names alone
		{[]string{"acme/*"}, "gpt", []string{"acme/fast"}, false},
		{[]string{"acme/*"}, "acme/x", []string{"fast"}, true},
		// BR-170: an alias does not satisfy the check by itself
		{[]string{"big"}, "small", []string{"fast"}, false},
		{[]string{"fast"}, "small", []string{"fast"}, true},
		{[]string{"route"}, "small", []string{"route", "fast"}, true},
		// BR-173: exact bytes
		{[]string{"gpt-4o"}, "GPT-4o", nil, false},
		{[]string{"gpt-4o"}, "x", []string{" gpt-4o"}, false},
		{[]string{"gpt-4o"}, "x", []string{"gpt-4o\u200b"}, false},
	} {
		list := &c.list
		if c.list == nil {
			list = nil
		}
		if got := tenant.Allows(list, c.model, c.requested); got != c.want {
			t.Errorf("%v allows %q, asked for as %q: %t, want %t", c.list, c.model, c.requested, got, c.want)
		}
	}
}

// KEY-5, BR-173.
func TestNamesOfModelsHaveNoSpaceNoStarAndNothingInvisible(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-4o": true, "acme/gpt:free@2026+x_y.z": true, strings.Repeat("a", 200): true,
		"": false, strings.Repeat("a", 201): false, " gpt": false, "gpt ": false, "gpt\u200b": false, "gpt*": false, "gpt\n": false, "gpt?": false, "modèle": false, "a\x00": false,
	} {
		if err := tenant.ValidModelName(name); (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", name, err, want)
		}
	}
}

// KEY-2.
func TestASecretMadeHereIsKnownByItsTagAndNoOther(t *testing.T) {
	store := bytes.Repeat([]byte{7}, 32)
	rapid.Check(t, func(t *rapid.T) {
		var random [tenant.SecretRandomBytes]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), len(random), len(random)).Draw(t, "random"))
		secret, prefix, hash := tenant.NewSecret(random, store)
		if ours, valid := tenant.CheckTag(secret, store); !ours || !valid {
			t.Fatalf("%s: ours %t, valid %t", secret, ours, valid)
		}
		if !strings.HasPrefix(secret, prefix) || len(prefix) != 9 || !tenant.SameHash(hash, tenant.HashSecret(secret)) {
			t.Fatalf("%s: prefix %s, hash %x", secret, prefix, hash)
		}
		if ours, valid := tenant.CheckTag(secret, []byte("another store")); !ours || valid {
			t.Fatalf("another store: ours %t, valid %t", ours, valid)
		}
		at := rapid.IntRange(len(tenant.SecretMark), len(secret)-1).Draw(t, "at")
		changed := []byte(secret)
		changed[at] = "0123456789"[rapid.IntRange(0, 9).Draw(t, "digit")]
		if ours, valid := tenant.CheckTag(string(changed), store); !ours || valid != (string(changed) == secret) {
			t.Fatalf("%s made of %s: ours %t, valid %t", changed, secret, ours, valid)
		}
	})
}

func TestOtherSecretsAreNotOurs(t *testing.T) {
	store := make([]byte, 32)
	secret, _, _ := tenant.NewSecret([tenant.SecretRandomBytes]byte{}, store)
	for _, other := range []string{"", "weir_", "sk-0123456789", secret[:len(secret)-1], secret + "0", "Weir" + secret[4:], secret[:10] + "-" + secret[11:], secret[:10] + "\xff" + secret[11:]} {
		if ours, valid := tenant.CheckTag(other, store); ours || valid {
			t.Errorf("%q: ours %t, valid %t", other, ours, valid)
		}
	}
	if err := tenant.ValidSecret(secret); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a secret of weir's own form is declared: %v", err)
	}
	if got := tenant.SecretPrefix("sk-0123456789abc"); got != "sk-0" {
		t.Errorf("prefix is %q", got)
	}
}

// MON-4: amounts are decimal strings; what is wrong is named by its path.
func TestAKeysFormIsReadStrictly(t *testing.T) {
	for text, want := range map[string][]string{
		`{"caps":{"day":5}}`:                              nil,
		`{"caps":{"day":"5.000000001"}}`:                  nil,
		`{"caps":{"day":1.5}}`:                            {"caps.day"},
		`{"caps":{"day":1e3}}`:                            {"caps.day"},
		`{"caps":{"day":-1}}`:                             {"caps.day"},
		`{"caps":{"day":"-1","seven_day":"NaN"}}`:         {"caps.day", "caps.seven_day"},
		`{"caps":{"day":"1.0000000001"}}`:                 {"caps.day"},
		`{"caps":{"day":"1000000001"}}`:                   {"caps.day"},
		`{"caps":{"day":true}}`:                           {"caps.day"},
		`{"caps":[]}`:                                     {"caps"},
		`{"limits":{"rpm":"5"}}`:                          {"limits.rpm"},
		`{"limits":{"rpm":5.0}}`:                          {"limits.rpm"},
		`{"limits":{"rpm":1000000000001}}`:                {"limits.rpm"},
		`{"limits":{"rps":1}}`:                            {"limits.rps"},
		`{"allowed_models":"gpt"}`:                        {"allowed_models"},
		`{"allowed_models":["a",1]}`:                      {"allowed_models[1]"},
		`{"Team":"x","naem":"y"}`:                         {"Team", "naem"},
		`{"prefix":"weir_"}`:                              {"prefix"},
		`{"expires_at":"2026-01-01"}`:                     {"expires_at"},
		`{"expires_at":1767225600}`:                       {"expires_at"},
		`{"disabled":"no"}`:                               {"disabled"},
		`{"budgets":[]}`:                                  {"budgets"},
		`[]`:                                              {""},
		`{"max_output_tokens":1000000001,"user":["ada"]}`: {"max_output_tokens", "user"},
	} {
		n, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = new(tenant.Key).Read(n)
		if diff := cmp.Diff(want, paths(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestAKeyIsValidatedWhereverItCameFrom(t *testing.T) {
	for want, k := range map[string]tenant.Key{
		"name":              {Name: " k"},
		"team":              {Team: "a b"},
		"project":           {Project: strings.Repeat("p", 129)},
		"user":              {User: "ä"},
		"plan":              {Plan: "in tern"},
		"allowed_models[1]": {AllowedModels: &[]string{"a", "*"}},
		"max_output_tokens": {MaxOutputTokens: number(-1)},
		"caps.day":          {Caps: tenant.Caps{Day: dollars(-1)}},
		"limits.tpm":        {Limits: tenant.RuntimeLimits{TPM: number(-1)}},
		"expires_at":        {ExpiresAt: -1},
	} {
		if diff := cmp.Diff([]string{want}, paths(t, k.Validate(nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
}

func TestAKeyAndAWorkspaceComeBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &tenant.Key{
			Prefix: rapid.SampledFrom([]string{"", "weir_ab"}).Draw(t, "prefix"), Disabled: rapid.Bool().Draw(t, "disabled"),
			ExpiresAt: rapid.Int64Range(0, 253402300799_999999).Draw(t, "expires"), User: rapid.SampledFrom([]string{"", "ada"}).Draw(t, "user"),
		}
		if rapid.Bool().Draw(t, "templated") {
			k.ApplyTemplate(full(), nil, "2026-03-08")
		}
		if rapid.Bool().Draw(t, "none") {
			k.AllowedModels = &[]string{}
		}
		body, err := tenant.EncodeKey(k)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodeKey(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(k, back); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", body, diff)
		}
		workspaceComesBack(t)
	})
}

func workspaceComesBack(t *rapid.T) {
	w := tenant.NewWorkspace("", "")
	w.Funds = rapid.SampledFrom([]string{tenant.Open, tenant.Prepaid, tenant.PrepaidHold}).Draw(t, "funds")
	w.CreditLine = money.Nanos(rapid.Int64Range(0, int64(money.MaxAmount)).Draw(t, "credit"))
	w.Zone, w.ZoneEpoch = rapid.SampledFrom([]string{"", "Asia/Kathmandu"}).Draw(t, "zone"), rapid.Uint32().Draw(t, "epoch")
	w.Limits.RPM = rapid.SampledFrom([]*int64{nil, number(0), number(5)}).Draw(t, "rpm")
	w.HideAmounts, w.Inherit = rapid.Bool().Draw(t, "hide"), rapid.Bool().Draw(t, "inherit")
	w.BudgetRefusal = rapid.SampledFrom([]int{402, 429}).Draw(t, "refusal")
	if rapid.Bool().Draw(t, "more") {
		w.TypeDefaults = map[string]tenant.RuntimeLimits{tenant.Personal: {TPM: number(0)}}
		w.KeyTemplate = &tenant.Template{Caps: tenant.Caps{Day: dollars(0)}}
	}
	body, err := tenant.EncodeWorkspace(w)
	if err != nil {
		t.Fatal(err)
	}
	back, err := tenant.DecodeWorkspace(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if diff := cmp.Diff(w, back); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", body, diff)
	}
}

func FuzzReadKey(f *testing.F) {
	for _, seed := range []string{`{}`, `{"caps":{"day":"5"},"limits":null}`, `{"allowed_models":["a/*"],"expires_at":"2026-01-01T00:00:00Z"}`, `{"caps":{"day":1e999}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		k := &tenant.Key{}
		if _, err := k.Read(n); err != nil || k.Validate(nil) != nil {
			return
		}
		body, err := tenant.EncodeKey(k)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodeKey(body)
		if err != nil || fmt.Sprint(back.Caps.Any(), back.ExpiresAt) != fmt.Sprint(k.Caps.Any(), k.ExpiresAt) {
			t.Fatalf("%s became %s: %v", text, body, err)
		}
	})
}
