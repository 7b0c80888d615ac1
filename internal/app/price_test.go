// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/money"
)

const (
	priceKey   = "the-secret-of-the-priced-key"
	cappedKey  = "the-secret-of-the-capped-key"
	imported   = "sim?in=20&out=30"
	priceWorld = `
models:
  - {name: listed, provider: sim, upstream: "` + imported + `"}
  - name: dated
    provider: sim
    upstream: "sim?in=20&out=30"
    price:
      - {input: "1", output: "10"}
      - {input: "2", output: "20", valid_from: "%CHANGE%"}
keys:
  - {name: k, secret: ` + priceKey + `}
  - {name: capped, secret: ` + cappedKey + `, caps: {day: "5"}}
`
)

// priceWorldAt is a world whose dated price changes at an instant.
func priceWorldAt(change time.Time) string {
	return strings.ReplaceAll(priceWorld, "%CHANGE%", change.UTC().Format(time.RFC3339))
}

// importAt imports one model's price of a token of input and of output.
func (w *world) importAt(input, output string) {
	w.t.Helper()
	list := `{"` + imported + `":{"litellm_provider":"sim","mode":"chat","input_cost_per_token":` + input + `,"output_cost_per_token":` + output + `}}`
	out, err := w.admin.PriceImport(context.Background(), admin.PriceImportRequest{Body: json.RawMessage(list)})
	if err != nil || out.Listed != 1 {
		w.t.Fatalf("import: %+v, %v", out, err)
	}
}

// TestAnImportedPriceIsChargedFromTheNextRequestOn: PRC-2, PRC-3. What a request
// was priced by stays with it.
func TestAnImportedPriceIsChargedFromTheNextRequestOn(t *testing.T) {
	w := newWorld(t, priceWorldAt(time.UnixMicro(start).Add(time.Hour)))
	w.must(w.chat(cappedKey, "listed"), 400, "model_unpriced")
	w.importAt("1e-06", "1e-05")
	first := w.must(w.chat(cappedKey, "listed"), 200, "")
	if got := w.spend("capped"); got != 20*1_000+30*10_000 {
		t.Errorf("spent %s", got)
	}
	w.importAt("2e-06", "2e-05")
	w.must(w.chat(cappedKey, "listed"), 200, "")
	if got := w.spend("capped"); got != 3*(20*1_000+30*10_000) {
		t.Errorf("spent %s", got)
	}
	if r := w.shown(first); r.Price == nil || r.Price.Source != "imported" || r.Price.Input != "1" || r.Price.List != "litellm" {
		t.Errorf("the first request's price is %+v", r.Price)
	}
	w.balanced()
}

// TestADatedPriceIsChargedFromItsInstantOn: PRC-1, PRC-2.
func TestADatedPriceIsChargedFromItsInstantOn(t *testing.T) {
	change := time.UnixMicro(start).Add(time.Hour)
	w := newWorld(t, priceWorldAt(change))
	const before = money.Nanos(20*1_000 + 30*10_000)
	w.must(w.chat(priceKey, "dated"), 200, "")
	w.clock.Advance(time.Hour - time.Microsecond)
	w.must(w.chat(priceKey, "dated"), 200, "")
	if got := w.spend("k"); got != 2*before {
		t.Errorf("spent %s before the instant", got)
	}
	w.clock.Advance(time.Microsecond)
	w.must(w.chat(priceKey, "dated"), 200, "")
	if got := w.spend("k"); got != 4*before {
		t.Errorf("spent %s with the instant", got)
	}
	w.balanced()
}
