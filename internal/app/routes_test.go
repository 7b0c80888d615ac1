// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/simulator"
)

// barred is one reason for which no request may reach a provider.
type barred struct {
	name      string
	workspace string // settings of the workspace
	key       string // settings of the key
	spend     int    // requests that exhaust it
	running   bool   // it is exhausted while one request runs
	secret    string // sent instead of the key's
	// sparesFree: a request of price zero that counts no tokens passes (PRC-4).
	sparesFree bool
	money      bool // it limits spend
	status     int
	code       string
}

func bars() []barred {
	return []barred{
		{name: "unknown key", secret: "the-secret-of-nobody-at-all", status: 401, code: "invalid_api_key"},
		{name: "disabled key", key: "disabled: true", status: 403, code: "apikey_inactive"},
		{name: "expired key", key: `expires_at: "2026-07-20T12:00:00Z"`, status: 403, code: "apikey_inactive"},
		{name: "empty funds", workspace: "funds: prepaid\n", status: 402, code: "insufficient_balance"},
		{name: "empty held funds", workspace: "funds: prepaid_hold\n", status: 402, code: "insufficient_balance"},
		{name: "no model allowed", key: "allowed_models: []", status: 400, code: "model_not_allowed"},
		{name: "day cap", key: `caps: {day: "0.0001"}`, spend: 1, sparesFree: true, money: true, status: 402, code: "day_limit_reached"},
		{name: "seven-day cap", key: `caps: {seven_day: "0.0001"}`, spend: 1, sparesFree: true, money: true, status: 402, code: "seven_day_limit_reached"},
		{name: "thirty-day cap", key: `caps: {thirty_day: "0.0001"}`, spend: 1, sparesFree: true, money: true, status: 402, code: "thirty_day_limit_reached"},
		{name: "key rpm", key: "limits: {rpm: 1}", spend: 1, status: 429, code: "api_key_rpm_exceeded"},
		{name: "key tpm", key: "limits: {tpm: 20}", spend: 1, sparesFree: true, status: 429, code: "api_key_tpm_exceeded"},
		{name: "key concurrency", key: "limits: {concurrency: 1}", running: true, status: 429, code: "api_key_concurrency_exceeded"},
		{name: "workspace rpm", workspace: "limits: {rpm: 1}\n", spend: 1, status: 429, code: "workspace_rpm_exceeded"},
		{name: "workspace tpm", workspace: "limits: {tpm: 20}\n", spend: 1, sparesFree: true, status: 429, code: "workspace_tpm_exceeded"},
		{name: "workspace concurrency", workspace: "limits: {concurrency: 1}\n", running: true, status: 429, code: "workspace_concurrency_exceeded"},
	}
}

const routesKey = "the-secret-of-the-walking-key"

// TestNoRouteToAProviderSkipsAnyCheck: ORD-3, BR-178. It walks the running server's own
// route table, with a world for each bar and door.
func TestNoRouteToAProviderSkipsAnyCheck(t *testing.T) {
	table := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+"}\n").server.Routes()
	governed := 0
	for _, route := range table {
		if !route.Governed {
			continue
		}
		governed++
		for _, b := range bars() {
			t.Run(strings.ReplaceAll(route.Path, "/", " ")+": "+b.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, b.workspace+doorModels+"keys:\n  - {name: k, secret: "+routesKey+", "+b.key+"}\n")
				b.refuses(w, route)
				w.settled("1", "10")
			})
		}
	}
	if governed == 0 {
		t.Fatal("no route reaches a provider")
	}
}

func (b barred) refuses(w *world, route gateway.Route) {
	w.t.Helper()
	for range b.spend {
		w.must(w.chat(routesKey, "m"), 200, "")
	}
	first := make(chan answer, 1)
	if b.running {
		w.provider.Hold()
		go func() { first <- w.enter(route, routesKey, false) }()
		w.await("the running request", func(n simulator.Totals) bool { return n.Held == 1 })
	}
	before := w.provider.Bill().Totals
	secret := routesKey
	if b.secret != "" {
		secret = b.secret
	}
	status, code := b.status, b.code
	if b.sparesFree && (route.Door.Counts() || b.money && freeDoor(route.Door)) {
		status, code = 200, ""
	}
	for _, stream := range []bool{false, true} {
		w.must(w.enter(route, secret, stream), status, code)
	}
	after := w.provider.Bill().Totals
	if status != 200 && (after.Requests != before.Requests || after.Refused != before.Refused) {
		w.t.Errorf("%s %s: a refused request reached the provider", route.Method, route.Path)
	}
	if b.running {
		w.provider.Release()
		w.must(<-first, 200, "")
		w.must(w.enter(route, routesKey, true), 200, "")
	}
}

// TestARouteThatIsNotGovernedReachesNoProvider, whatever is sent to it: ORD-3.
// With a spent cap and no funds it answers all the same.
func TestARouteThatIsNotGovernedReachesNoProvider(t *testing.T) {
	w := newWorld(t, `funds: prepaid
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}
  - {name: google, protocol: gemini, base_url: "%PROVIDER%beta", api_key: `+providerCredential+`}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: g, provider: google, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+routesKey+`, caps: {day: "0.0001"}}
  - {name: off, secret: the-secret-of-the-disabled-key, disabled: true}
`)
	w.fund("0.0001")
	w.must(w.chat(routesKey, "m"), 200, "")
	w.must(w.chat(routesKey, "m"), 402, "insufficient_balance")
	before := w.provider.Bill().Totals
	for _, route := range w.server.Routes() {
		if route.Governed {
			continue
		}
		path := strings.ReplaceAll(route.Path, "{model}", "m")
		if route.Door == call.GeminiModels {
			path = strings.ReplaceAll(route.Path, "{model}", "g")
		}
		for _, body := range []string{"", chatBody("m", "")} {
			if a := w.do(context.Background(), route.Method, path, routesKey, body); a.err != nil || a.status != 200 {
				t.Errorf("%s %s: %v (%v)", route.Method, path, a, a.err)
			}
		}
		if route.Door == "" {
			continue
		}
		if a := w.do(context.Background(), route.Method, path, "the-secret-of-nobody-at-all", ""); a.status != 401 {
			t.Errorf("%s %s without a key: %v", route.Method, path, a)
		}
		if a := w.do(context.Background(), route.Method, path, "the-secret-of-the-disabled-key", ""); a.status != 403 {
			t.Errorf("%s %s with a disabled key: %v", route.Method, path, a)
		}
	}
	if after := w.provider.Bill().Totals; after.Requests != before.Requests || after.Refused != before.Refused || after.MaxOpenConnections > 1 {
		t.Errorf("the provider was reached: %+v", after)
	}
}

// TestAnotherSpellingOfADoorIsNoDoor: BR-181.
func TestAnotherSpellingOfADoorIsNoDoor(t *testing.T) {
	w := newWorld(t, errorsConfig)
	for _, path := range []string{
		"//v1/chat/completions", "/v1//chat/completions", "/v1/chat/completions/", "/v1/chat%2Fcompletions", "/v1/ch%61t/completions",
		"/V1/chat/completions", "/v1/./chat/completions", "/v1/models/../chat/completions", "/v1/chat/completions;x",
	} {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+w.server.Addr()+path, strings.NewReader(chatBody("m", "")))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+errorsKey)
		response, err := w.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if n := w.provider.Bill().Requests; n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestWhatCanBeReadAnswersToHEADAndEveryPathToOPTIONS: SPEC section 9, ERR-4, ERR-5.
// Nothing of it is charged, asks a provider or needs more than its own key.
func TestWhatCanBeReadAnswersToHEADAndEveryPathToOPTIONS(t *testing.T) {
	w := newWorld(t, doorModels+"keys:\n  - {name: k, secret: "+routesKey+", limits: {rpm: 1}}\n")
	for _, route := range w.server.Routes() {
		path := strings.ReplaceAll(route.Path, "{model}", map[bool]string{true: "g", false: "m"}[route.Door.Protocol() == "gemini"])
		options := w.do(t.Context(), http.MethodOptions, path, "", "")
		allowed := options.header.Get("Allow")
		if options.status != 204 || options.body != "" || !strings.Contains(allowed, route.Method) || !strings.Contains(allowed, "OPTIONS") ||
			options.header.Get("X-Weir-Request-Id") == "" || options.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("OPTIONS %s: %v %v", path, options, options.header)
		}
		head := w.do(t.Context(), http.MethodHead, path, routesKey, "")
		switch {
		case head.err != nil || head.body != "":
			t.Errorf("HEAD %s: %v (%v)", path, head, head.err)
		case !route.Governed:
			get := w.do(t.Context(), http.MethodGet, path, routesKey, "")
			if head.status != 200 || get.status != 200 || head.header.Get("Content-Type") != get.header.Get("Content-Type") || !strings.Contains(allowed, "HEAD") {
				t.Errorf("HEAD %s is %d %v, GET is %d %v, allowed is %q", path, head.status, head.header, get.status, get.header, allowed)
			}
			if route.Door != "" {
				w.must(w.do(t.Context(), http.MethodHead, path, "the-secret-of-nobody-at-all", ""), 401, "")
			}
		case !strings.Contains(path, "/models/"): // which is a name that can be looked up
			if head.status != 405 || head.header.Get("Allow") != allowed || !strings.Contains(allowed, "POST") {
				t.Errorf("HEAD %s: %d, %v", path, head.status, head.header)
			}
		}
	}
	for _, path := range []string{"/v1/nothing", "/console", "/v1beta/files"} {
		w.must(w.do(t.Context(), http.MethodOptions, path, "", ""), 404, "not_found")
	}
	if n := w.provider.Bill().Requests; n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
	w.must(w.chat(routesKey, "m"), 200, "")
	w.must(w.chat(routesKey, "m"), 429, "api_key_rpm_exceeded")
	w.settled("1", "10")
}
