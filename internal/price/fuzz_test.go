// SPDX-License-Identifier: Apache-2.0

package price_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/price"
)

func FuzzParseCatalogue(f *testing.F) {
	f.Add(catalogueHead + "m\tall( ^m none( ~x /\\d ) ) =n\t9\tinput=1 above.9.output=2 !video\tfrom=2026-01-03 hours=22:00:00-02:00:00 input=2\n")
	f.Add(catalogueHead + "provider\tr\tresells=p\nm\t=m\t0\t-\n")
	f.Add("# nothing\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := price.ParseCatalogue(text)
		if err != nil {
			if c != nil {
				t.Fatal("a broken catalogue came back beside its error")
			}
			return
		}
		for _, entry := range c.List(price.Filter{}) {
			if strings.TrimSpace(entry.Model) != entry.Model {
				continue
			}
			if _, ok := c.Lookup(entry.Provider, entry.Model); !ok {
				t.Fatalf("%q is listed and not found", entry.String())
			}
			if r, ok := entry.RowAt(0); ok && r.IsEmpty() {
				t.Fatalf("%s has an empty row", entry)
			}
		}
	})
}

func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte(`{"model":"m","unit":"usd_per_million_tokens","input":"2","above":{"200000":{"input":"4"}},"factor":{"flex":"1/2"},"per_request":"1"}`))
	f.Add([]byte(`{"free":true}`))
	f.Add([]byte(`{"input":"20000","confirm":true,"valid_from_micros":7,"date":"2026-01-02","source":"built-in"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := price.DecodeRow(data)
		if err != nil {
			return
		}
		again, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := price.DecodeRow(again)
		if err != nil || back.ID != r.ID {
			t.Fatalf("%s became %s: %v", data, again, err)
		}
		u := call.Usage{Input: 300_000, CachedInput: 1, AudioInput: 2, Output: 3, ImageOutput: 4, ServiceTier: "flex"}
		charge, err := r.Charge(u)
		worst, werr := r.Worst(price.Want{InputTokens: u.InputTotal(), OutputTokens: u.OutputTotal(), ServiceTier: "flex"})
		if err == nil && werr == nil && (charge < 0 || charge > worst) {
			t.Fatalf("%s charges %s and holds %s", again, charge, worst)
		}
	})
}

func FuzzParseSpec(f *testing.F) {
	f.Add("input", "0.15")
	f.Add("above.200000.output", "18")
	f.Add("factor.flex", "5/3")
	f.Add("confirm", "true")
	f.Fuzz(func(t *testing.T, key, value string) {
		r, err := price.ParseSpec("m", price.Spec{Fields: fields{key: value}})
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if data, err := r.AppendJSON(nil); err != nil {
			t.Fatalf("%q=%q can't be written: %s, %v", key, value, data, err)
		}
	})
}
