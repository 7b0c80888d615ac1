// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/price"
)

// gemini is a row whose service tiers are no multiple of its standard prices.
func gemini(t testing.TB) *price.Row {
	return row(t, fields{
		"input": "1.25", "cached_input": "0.125", "output": "10", "audio_input": "3",
		"above.200000.input": "2.5", "above.200000.output": "15",
		"service_tier.flex.input": "0.625", "service_tier.flex.output": "5.5",
		"service_tier.priority.input": "2.25", "service_tier.priority.cached_input": "0.225", "service_tier.priority.output": "18",
		"service_tier.priority.above.200000.input": "4.5", "service_tier.priority.above.200000.output": "27",
		"factor.batch": "1/2",
	})
}

// PRC-1, USE-2, BR-088: a service tier may have a price for each part, above a
// length, too. What it leaves out costs what the standard tier says; above a length
// for which it says nothing the dearer holds.
func TestAServiceTierHasPricesOfItsOwn(t *testing.T) {
	const million = 1_000_000
	for _, c := range []struct {
		name  string
		usage call.Usage
		want  string
	}{
		{"standard", call.Usage{Input: 100_000, Output: 100_000}, "1.125"},
		{"flex, part by part", call.Usage{Input: 100_000, Output: 100_000, ServiceTier: "flex"}, "0.6125"},
		{"flex leaves the cache at its own price", call.Usage{CachedInput: 100_000, ServiceTier: "flex"}, "0.0125"},
		{"flex leaves audio at its own price", call.Usage{AudioInput: 100_000, ServiceTier: "flex"}, "0.3"},
		{"a part that nobody prices is the broader one here", call.Usage{ImageInput: 100_000, ServiceTier: "flex"}, "0.0625"},
		{"exactly at the threshold stays low", call.Usage{Input: 200_000, ServiceTier: "priority"}, "0.45"},
		{"above it the tier's own long prices", call.Usage{Input: 200_001, ServiceTier: "priority"}, "0.9000045"},
		{"long and cached: the dearer of its own and the standard", call.Usage{CachedInput: million, ServiceTier: "priority"}, "2.5"},
		{"long flex is not listed: never below the standard", call.Usage{Input: million, Output: million, ServiceTier: "flex"}, "17.5"},
		{"a factor beside it", call.Usage{Input: 100_000, Output: 100_000, ServiceTier: "batch"}, "0.5625"},
		{"a tier of no name here", call.Usage{Input: 100_000, Output: 100_000, ServiceTier: "scale"}, "1.125"},
	} {
		c.usage.Requests = 1
		got, err := gemini(t).Charge(c.usage)
		if err != nil || got.String() != c.want {
			t.Errorf("%s: charged %s, %v; want %s", c.name, got, err, c.want)
		}
		if shown, err := gemini(t).Explain(c.usage); err != nil || shown.Cost != got {
			t.Errorf("%s: shown as %+v, %v", c.name, shown, err)
		}
	}
	for tier, want := range map[string]bool{"flex": true, "priority": true, "batch": true, "scale": false} {
		if gemini(t).PricesTier(tier) != want || gemini(t).PricesTierByPart(tier) != (want && tier != "batch") {
			t.Errorf("the row does not say whether it prices %s", tier)
		}
	}
}

// EST-3: the dearer of the tier asked for and the standard one, whole and by part.
func TestAServiceTierIsHeldAtTheDearer(t *testing.T) {
	for tier, want := range map[string]string{"": "1.3", "flex": "1.3", "priority": "2.1", "batch": "1.3"} {
		w := price.Want{InputTokens: 100_000, OutputTokens: 100_000, ServiceTier: tier, NoImageInput: true}
		if got, err := gemini(t).Worst(w); err != nil || got.String() != want {
			t.Errorf("%q asked for: held %s, %v; want %s", tier, got, err, want)
		}
	}
}

// What a row may say of service tiers, and what is no row.
func TestPricesOfServiceTiersAreReadStrictly(t *testing.T) {
	crowd := fields{"input": "1"}
	for _, c := range "abcdefghijklmnopq" {
		crowd["service_tier."+string(c)+".input"] = "1"
	}
	for _, c := range []struct {
		fields fields
		field  string
	}{
		{fields{"service_tier.flex": "1/2"}, "service_tier.flex"},
		{fields{"service_tier.Flex.input": "1"}, "service_tier.Flex.input"},
		{fields{"service_tier.flex.per_request": "1"}, "service_tier.flex.per_request"},
		{fields{"service_tier.flex.above.0.input": "1"}, "service_tier.flex.above.0.input"},
		{fields{"service_tier.flex.above.9.above.9.input": "1"}, "service_tier.flex.above.9.above.9.input"},
		{fields{"service_tier.flex.input": "10001"}, "input"},
		{fields{"service_tier.flex.input": "1", "factor.flex": "1/2"}, "service_tier.flex"},
		{fields{"free": "true", "service_tier.flex.input": "1"}, "free"},
		{crowd, "service_tier.q.input"},
	} {
		_, err := price.ParseSpec("m", price.Spec{Fields: c.fields})
		var field *price.FieldError
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%v: %v", c.fields, err)
		}
	}
	for _, text := range []string{
		`{"service_tier":{"flex":{"above":{"9":{"input":{"x":{}}}}}}}`, `{"service_tier":{"flex":"1/2"}}`, `{"service_tier":{"flex":{"input":1}}}`,
	} {
		if r, err := price.DecodeRow([]byte(text)); err == nil {
			t.Errorf("%s was decoded as %+v", text, r)
		}
	}
}

// PRC-2: an override takes the service tiers of the next source where it prices
// neither of their sides; rows that were kept before there were such prices keep
// their text and their id.
func TestAnOverrideTakesServiceTiersWhole(t *testing.T) {
	under := gemini(t)
	for _, c := range []struct {
		over fields
		want []string
	}{
		{fields{"cached_input": "0.1"}, []string{"factor.batch", "flex", "priority"}},
		{fields{"input": "1"}, []string{"factor.batch"}},
		{fields{"cached_input": "0.1", "factor.flex": "1/2"}, []string{"factor.flex", "priority"}},
		{fields{"cached_input": "0.1", "service_tier.batch.input": "0.5"}, []string{"batch", "flex", "priority"}},
		{fields{"input": "1", "output": "2"}, nil},
	} {
		if diff := cmp.Diff(c.want, tiersOf(row(t, c.over).Over(under))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.over, diff)
		}
	}
	kept := `{"id":"ec8e55ad85948559d2a45cb05f923bd0","model":"m","source":"override","unit":"usd_per_million_tokens","input":"2","factor":{"flex":"1/2"}}`
	r, err := price.DecodeRow([]byte(kept))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.AppendJSON(nil); err != nil || string(text) != kept {
		t.Errorf("a row that was kept is now %s, %v", text, err)
	}
}

// tiersOf names the service tiers that a row prices, those by a factor as such.
func tiersOf(r *price.Row) (list []string) {
	for name := range r.Factors {
		list = append(list, "factor."+name)
	}
	for name := range r.ServiceTiers {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
