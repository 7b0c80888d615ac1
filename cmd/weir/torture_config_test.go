// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

const (
	outputBound  = 200 // max_output_tokens of both models
	heldCredit   = "0.25"
	paidCredit   = "0.15"
	wrongSecret  = "a-secret-that-no-key-of-the-torture-has"
	credential   = "provider-credential-of-the-torture"
	contextOfAll = 8192
)

// tortureKeys are the keys by name; each one's secret is secretOf(name).
var tortureKeys = []struct{ name, workspace string }{
	{"free", ""},
	{"capped", ""},
	{"paced", ""},
	{"metered", ""},
	{"narrow", ""},
	{"guarded", ""},
	{"toggled", ""},
	{"ruled", ""},
	{"tight", "tight"},
	{"people", "tight"},
	{"held", "held"},
	{"paid", "paid"},
}

func workspaceOf(key string) string {
	for _, k := range tortureKeys {
		if k.name == key {
			return k.workspace
		}
	}
	return ""
}

func secretOf(key string) string { return "the-secret-of-the-key-" + key }

// tortureUsers are those that requests of the key `people` name.
var tortureUsers = []string{"ada", "bob", "cyd", "dee", "eve"}

// settings are what changes under load, with SIGHUP.
type settings struct {
	zone     string
	hard     int64 // dollars in cents of the hard spend budget, and thousands of its tokens
	rpm      int64
	slots    int64
	disabled bool
}

func (s settings) change(r *rand.Rand) settings {
	zones := []string{"UTC", "Asia/Kolkata", "America/New_York", "Pacific/Apia", "Africa/Cairo"}
	return settings{
		zone: zones[r.IntN(len(zones))], hard: 5 + r.Int64N(30), rpm: 20 + r.Int64N(60), slots: 1 + r.Int64N(6), disabled: r.IntN(2) == 0,
	}
}

func (w *tortured) write(s settings) {
	w.t.Helper()
	var keys strings.Builder
	for _, k := range []struct{ name, rest string }{
		{"free", ""},
		{"capped", `, caps: {day: "0.30"}`},
		{"paced", ", limits: {rpm: 30}"},
		{"metered", ", limits: {tpm: 6000}"},
		{"narrow", fmt.Sprintf(", limits: {concurrency: %d}", s.slots)},
		{"guarded", `, budgets: [{name: guarded, metric: spend, limit: "0.02", window: 10s}]`},
		{"toggled", fmt.Sprintf(", disabled: %t, limits: {rpm: %d}", s.disabled, s.rpm)},
		{"ruled", ""},
		{"single", ", limits: {concurrency: 1}"},
	} {
		fmt.Fprintf(&keys, "  - {name: %s, secret: %s%s}\n", k.name, secretOf(k.name), k.rest)
	}
	text := fmt.Sprintf(`listen: 127.0.0.1:0
%s
bounds: {drain_timeout: 1s, write_timeout: 5s}
providers:
  - {name: sim, protocol: openai, base_url: "%s/v1", api_key: %s, timeouts: {connect: 5s, first_byte: 2s, idle: 2s, total: 6s}}
models:
  - {name: m, provider: sim, upstream: up-m, context_tokens: %d, max_output_tokens: %d, price: {input: "1", output: "10"}}
  - {name: dear, provider: sim, upstream: up-dear, context_tokens: %d, max_output_tokens: %d, price: {input: "3.3", output: "15.7"}}
time_zone: %s
limits: {rpm: 100000, concurrency: 48}
keys:
%srate_limits:
  - {name: of ruled, subject_kind: api_key, subject_id: ruled, metric: requests, window_seconds: 3, limit: 25}
  - {name: tokens of ruled, subject_kind: api_key, subject_id: ruled, metric: tokens, window_seconds: 4, limit: 12000}
workspaces:
  - name: tight
    limits: {concurrency: 100000}
    keys:
      - {name: tight, secret: %s}
      - {name: people, secret: %s, attribute_users: header}
    budgets:
      - {name: all tokens, scope: org, metric: tokens, limit: %d, window: 10s, enforcement: hard}
      - {name: all spend, scope: org, metric: spend, limit: "0.%02d", period: day, enforcement: hard}
      - {name: each user, scope: user, metric: spend, limit: "0.01", window: 12s, enforcement: hard}
      - {name: each key, scope: key, metric: tokens, limit: 9000, window: 10s, enforcement: hard}
    rate_limits:
      - {name: each user, subject_kind: user, metric: requests, window_seconds: 2, limit: 10}
  - {name: held, funds: prepaid_hold, limits: {concurrency: 100000}, keys: [{name: held, secret: %s}]}
  - {name: paid, funds: prepaid, limits: {concurrency: 100000}, keys: [{name: paid, secret: %s}]}
`,
		w.storeLines, w.provider.URL(), credential, contextOfAll, outputBound, contextOfAll, outputBound, s.zone, keys.String(),
		secretOf("tight"), secretOf("people"), 500*s.hard, s.hard, secretOf("held"), secretOf("paid"))
	// As an editor replaces a file: what reads it sees the old one or the new one.
	next := filepath.Join(w.dir, "weir.yaml.next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(next, w.config); err != nil {
		w.t.Fatal(err)
	}
	w.settings = s
}
