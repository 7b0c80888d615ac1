// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
)

const fundsKey = "the-secret-of-the-funded-key"

// fundsConfig: a request costs 320 µ$.
func fundsConfig(settings string) string {
	return settings + `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 128000, price: {input: "1", output: "10"}}
  - {name: gratis, provider: sim, upstream: "sim?in=20&out=30", price: free}
  - {name: unpriced, provider: sim, upstream: "no-such-model-anywhere"}
keys:
  - {name: k, secret: ` + fundsKey + `}
`
}

func (w *world) book(kind, amount, reason string) (admin.BalanceAnswer, error) {
	return w.admin.FundsBook(context.Background(), admin.FundRequest{Body: admin.FundFields{Kind: kind, Amount: amount, Reason: reason}})
}

func (w *world) balance() string {
	w.t.Helper()
	b, err := w.admin.FundsShow(context.Background(), admin.BalanceRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	return b.Balance
}

// TestPrepaidFundsCountForTheNextAdmission: BAL-1 to BAL-5, ADM-4. From zero,
// refused; topped up, admitted next; spent, refused; each kind of entry counts.
func TestPrepaidFundsCountForTheNextAdmission(t *testing.T) {
	w := newWorld(t, fundsConfig("funds: prepaid\n"))
	refused := func() answer {
		t.Helper()
		a := w.must(w.chat(fundsKey, "m"), 402, "insufficient_balance")
		if a.header.Get("X-Should-Retry") != "false" || a.header.Get("Retry-After") != "" {
			t.Errorf("headers of spent funds: %v", a.header)
		}
		return a
	}
	refused()
	for range 5 {
		w.fund("0.00032")
		w.must(w.chat(fundsKey, "m"), 200, "")
		refused()
	}
	if _, err := w.book("credit", "0.000000001", ""); err != nil {
		t.Fatal(err)
	}
	// A nano-dollar is above zero: it runs, and settles below (BAL-2).
	w.must(w.chat(fundsKey, "m"), 200, "")
	if got := w.balance(); got != "-0.000319999" {
		t.Errorf("balance %s", got)
	}
	refused()
	if _, err := w.book("adjustment", "0.00032", "goodwill"); err != nil {
		t.Fatal(err)
	}
	w.must(w.chat(fundsKey, "m"), 200, "")
	w.fund("1")
	if _, err := w.book("adjustment", "-2", "a wrong top-up"); err != nil {
		t.Fatal(err)
	}
	refused()
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", fundsKey, ""), 200, "") // the key stays valid
	w.settled("1", "10")
	w.restart()
	refused()
	w.fund("2")
	w.must(w.chat(fundsKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestFundEntriesAreHeldToTheirRules: BAL-5, MON-4.
func TestFundEntriesAreHeldToTheirRules(t *testing.T) {
	w := newWorld(t, fundsConfig("funds: prepaid\n"))
	for _, c := range [][3]string{
		{"top_up", "0", ""},
		{"top_up", "-1", ""},
		{"credit", "0", ""},
		{"credit", "-0.5", ""},
		{"top_up", "NaN", ""},
		{"top_up", "1e3", ""},
		{"top_up", "0.0000000001", ""},
		{"top_up", "1000000001", ""},
		{"adjustment", "1", ""},
		{"gift", "1", "x"},
		{"top_up", "", ""},
	} {
		if _, err := w.book(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v was booked", c)
		}
	}
	if got := w.balance(); got != "0" {
		t.Errorf("balance %s", got)
	}
	w.must(w.chat(fundsKey, "m"), 402, "insufficient_balance")
}

// TestRunningRequestsMaySettleBelowZero, later ones are refused: BAL-2.
func TestRunningRequestsMaySettleBelowZero(t *testing.T) {
	w := newWorld(t, fundsConfig("funds: prepaid\n"))
	w.fund("0.0001")
	w.provider.Hold()
	done := make(chan []answer, 1)
	go func() { done <- volley(10, 10, func(int) answer { return w.chat(fundsKey, "m") }) }()
	w.await("all ten", func(n simulator.Totals) bool { return n.Held == 10 })
	w.provider.Release()
	if got := count(<-done, 200); got != 10 {
		t.Errorf("%d of 10 completed", got)
	}
	if got := w.balance(); got != "-0.0031" {
		t.Errorf("balance %s, want 0.0001 less 10 × 0.00032", got)
	}
	w.must(w.chat(fundsKey, "m"), 402, "insufficient_balance")
	w.settled("1", "10")
}

// TestACreditLineIsAnEnterprises: BAL-1, BAL-5. It is spent like paid-in money,
// and a person cannot have one.
func TestACreditLineIsAnEnterprises(t *testing.T) {
	w := newWorld(t, fundsConfig("type: enterprise\nfunds: prepaid\ncredit_line: \"0.0004\"\n"))
	answers := volley(4, 1, func(int) answer { return w.chat(fundsKey, "m") })
	if got := count(answers, 200); got != 2 {
		t.Errorf("admitted %d, want 2", got)
	}
	w.must(answers[2], 402, "insufficient_balance")
	if got := w.balance(); got != "-0.00064" {
		t.Errorf("balance %s", got)
	}
	w.settled("1", "10")
	w.stop()
	w.write(fundsConfig("type: personal\nfunds: prepaid\ncredit_line: \"0.0004\"\n"))
	if _, err := app.Start(context.Background(), w.options()); err == nil || !strings.Contains(err.Error(), "credit_line") {
		t.Errorf("a person's credit line: %v", err)
	}
}

// TestFundsRefuseAFreeModelToo, but no spent cap does: PRC-4, PRC-3.
func TestFundsRefuseAFreeModelToo(t *testing.T) {
	w := newWorld(t, fundsConfig("funds: prepaid\n"))
	w.must(w.chat(fundsKey, "gratis"), 402, "insufficient_balance")
	w.fund("0.0001")
	w.must(w.chat(fundsKey, "unpriced"), 400, "model_unpriced")
	w.must(w.chat(fundsKey, "gratis"), 200, "")
	w.must(w.chat(fundsKey, "m"), 200, "")
	w.must(w.chat(fundsKey, "gratis"), 402, "insufficient_balance")
	w.must(w.chat(fundsKey, "unpriced"), 402, "insufficient_balance") // funds come before the price (ORD-1)
	w.balanced()
}

// TestTheKeyTellsItsLimitsAndTheirUse: KEY-8.
func TestTheKeyTellsItsLimitsAndTheirUse(t *testing.T) {
	w := newWorld(t, `time_zone: Europe/Berlin
limits: {rpm: 100}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - name: k
    secret: `+fundsKey+`
    team: platform
    user: ada
    caps: {day: "0.001", thirty_day: "5"}
    limits: {rpm: 10, tpm: 1000, concurrency: 3}
    expires_at: "2027-01-01T00:00:00Z"
`)
	for range 2 {
		w.must(w.chat(fundsKey, "m"), 200, "")
	}
	a := w.must(w.do(context.Background(), http.MethodGet, "/v1/key", fundsKey, ""), 200, "")
	var view admit.KeyView
	if err := json.Unmarshal([]byte(a.body), &view); err != nil {
		t.Fatal(err)
	}
	if view.Name != "k" || view.Status != "active" || view.Team != "platform" || view.User != "ada" || view.Workspace != "default" ||
		view.ExpiresAt != "2027-01-01T01:00:00+01:00" || strings.Contains(a.body, fundsKey) {
		t.Errorf("the key is %s", a.body)
	}
	type state struct{ amount, used, held, remaining, resets string }
	got := map[string]state{}
	for _, l := range view.Limits {
		got[l.Scope+" "+l.Metric+" "+l.Window] = state{l.Amount, l.Used, l.Held, l.Remaining, l.ResetsAt}
	}
	for name, want := range map[string]state{
		"key spend day":             {"0.001", "0.00064", "0", "0.00036", "2026-07-21T00:00:00+02:00"},
		"key spend thirty_day":      {"5", "0.00064", "0", "4.99936", ""},
		"key requests minute":       {"10", "2", "0", "8", ""},
		"key tokens minute":         {"1000", "100", "0", "900", ""},
		"key concurrency in_flight": {"3", "0", "0", "3", ""},
		"workspace requests minute": {"100", "2", "0", "98", ""},
	} {
		g, ok := got[name]
		if want.resets == "" {
			g.resets = ""
		}
		if !ok || g != want {
			t.Errorf("%s is %+v, want %+v", name, got[name], want)
		}
	}
	if t.Failed() {
		t.Log(a.body)
	}
	w.must(w.do(context.Background(), http.MethodGet, "/v1/key", "the-secret-of-nobody-at-all", ""), 401, "invalid_api_key")
}
