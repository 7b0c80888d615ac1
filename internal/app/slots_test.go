// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/simulator"
)

const slotKey = "the-secret-of-the-slotted-key"

func slotConfig(limits string) string {
	return `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", context_tokens: 128000, price: {input: "1", output: "10"}}
  - {name: slow, provider: sim, upstream: "sim?in=20&out=200&latency=2ms&gap=1ms", context_tokens: 128000, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + slotKey + `, limits: {` + limits + `}}
`
}

// TestWhoHasReadTheEndFindsTheSlotFree: RES-11, BR-147. Concurrency 1, and 200
// times the next request follows the last byte of the one before, on another
// connection, without a wait.
func TestWhoHasReadTheEndFindsTheSlotFree(t *testing.T) {
	w := newWorld(t, slotConfig("concurrency: 1"))
	for i := range 200 {
		if i%2 == 0 {
			w.must(w.chat(slotKey, "m"), 200, "")
			continue
		}
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(chatBody("m", `"stream":true`)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+slotKey)
		response, err := w.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d", i, response.StatusCode)
		}
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && lines.Text() != "data: [DONE]" {
		}
		w.must(w.chat(slotKey, "m"), 200, "")
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.settled("1", "10")
}

// TestAbortsLeakNoSlot: RUN-3, BR-151, RES-10. 200 clients go away at random
// moments, before, in and after the answer; then all five slots are there.
func TestAbortsLeakNoSlot(t *testing.T) {
	const aborts, slots = 200, 5
	w := newWorld(t, slotConfig("concurrency: 5"))
	random := rand.New(rand.NewPCG(20, 7))
	delays := make([]time.Duration, aborts)
	for i := range delays {
		delays[i] = time.Duration(random.IntN(60_000)) * time.Microsecond
	}
	volley(aborts, 16, func(i int) answer {
		ctx, cancel := context.WithTimeout(context.Background(), delays[i])
		defer cancel()
		body := chatBody("slow", "")
		if i%3 > 0 {
			body = chatBody("slow", `"stream":true`)
		}
		return w.do(ctx, http.MethodPost, "/v1/chat/completions", slotKey, body)
	})
	w.await("the provider at rest", func(n simulator.Totals) bool { return n.InFlight == 0 })
	w.eventually("the settlements", func() bool {
		ends, err := w.server.OpenUntil(context.Background())
		return err == nil && len(ends) == 0
	})
	w.provider.Hold()
	done := make(chan []answer, 1)
	go func() { done <- volley(slots, slots, func(int) answer { return w.chat(slotKey, "m") }) }()
	w.await("all slots", func(n simulator.Totals) bool { return n.Held == slots })
	w.must(w.chat(slotKey, "m"), 429, "api_key_concurrency_exceeded")
	w.provider.Release()
	if got := count(<-done, 200); got != slots {
		t.Errorf("%d of %d slots were left", got, slots)
	}
	w.balanced()
}

// TestAClientThatLeavesBeforeTheFirstByteFreesItsSlot: DIS-7, RES-4. Its stream
// had been sent, so its input is charged; the provider has not failed.
func TestAClientThatLeavesBeforeTheFirstByteFreesItsSlot(t *testing.T) {
	for _, c := range []struct {
		name, setting string
		stream        bool
	}{{"a stream", "", true}, {"a whole answer where the row says cancel", ", client_gone: cancel", false}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+c.setting+`}
models:
  - {name: silent, provider: sim, upstream: "sim?hang=headers", price: {input: "1", output: "10"}}
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+slotKey+`, limits: {concurrency: 1}}
`)
			ctx, leave := context.WithCancel(context.Background())
			left := make(chan answer, 1)
			body := chatBody("silent", "")
			if c.stream {
				body = chatBody("silent", `"stream":true`)
			}
			go func() { left <- w.do(ctx, http.MethodPost, "/v1/chat/completions", slotKey, body) }()
			w.await("the request", func(n simulator.Totals) bool { return n.InFlight == 1 })
			w.must(w.chat(slotKey, "m"), 429, "api_key_concurrency_exceeded")
			leave()
			<-left
			w.await("the provider to be let go", func(n simulator.Totals) bool { return n.InFlight == 0 })
			w.eventually("the slot", func() bool { return w.chat(slotKey, "m").status == 200 })
			if got := w.spend(""); int64(got) != (11+320)*1000 {
				t.Errorf("charged %s USD, want 11 µ$ for the one and 320 for the other", got)
			}
			w.balanced()
		})
	}
}

// TestARequestThatNobodyTookCostsNoRPM: ORD-5. Where nothing was sent to a
// provider everything comes back; once it was, RPM stays.
func TestARequestThatNobodyTookCostsNoRPM(t *testing.T) {
	w := newWorld(t, `
providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: `+providerCredential+`}
  - {name: nobody, protocol: openai, base_url: "http://127.0.0.1:1/v1", auth: none}
models:
  - {name: nobody, provider: nobody, upstream: m, price: {input: "1", output: "10"}}
  - {name: cut, provider: sim, upstream: "sim?cut=headers", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+slotKey+`, limits: {rpm: 2, tpm: 1000, concurrency: 1}}
`)
	for range 5 {
		w.must(w.chat(slotKey, "nobody"), 502, "upstream_unreachable")
		w.must(w.stream(slotKey, "nobody", ""), 502, "upstream_unreachable")
	}
	w.must(w.chat(slotKey, "cut"), 502, "upstream_unreachable")
	w.must(w.stream(slotKey, "cut", ""), 502, "upstream_unreachable")
	w.must(w.chat(slotKey, "cut"), 429, "api_key_rpm_exceeded")
	if got := w.spend(""); got != 0 {
		t.Errorf("charged %s USD", got)
	}
	w.balanced()
}

// TestARequestLargerThanItsBucketNeverPasses and is told so, in both layers:
// RUN-2.
func TestARequestLargerThanItsBucketNeverPasses(t *testing.T) {
	for layer, text := range map[string]string{
		"api_key": slotConfig("tpm: 10"), "workspace": "limits: {tpm: 10}\n" + slotConfig("rpm: 100"),
	} {
		w := newWorld(t, text)
		for range 2 {
			a := w.must(w.chat(slotKey, "m"), 429, layer+"_tpm_exceeded")
			if a.header.Get("Retry-After") != "" || a.header.Get("X-Should-Retry") != "false" || !strings.Contains(a.body, `"reason":"larger_than_limit"`) {
				t.Errorf("%s: %v %v", layer, a, a.header)
			}
			w.clock.Advance(time.Hour)
		}
		w.balanced()
	}
}

// TestBothLayersApplyAndTheLowerCeilingLaterIsAllowed: RUN-4.
func TestBothLayersApplyAndTheLowerCeilingLaterIsAllowed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, slotModels)
	setCeiling := func(rpm int64) {
		t.Helper()
		_, err := w.admin.WorkspaceUpdate(ctx, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{
			Limits: admin.Some(admin.RunFields{RPM: admin.Some(rpm)}),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string, rpm int64) (admin.KeyAnswer, error) {
		return w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{
			Name: admin.Some(name), Limits: admin.Some(admin.RunFields{RPM: admin.Some(rpm)}),
		}})
	}
	setCeiling(4)
	if _, err := create("above", 5); err == nil || !strings.Contains(err.Error(), "rpm") {
		t.Errorf("a key above the ceiling: %v", err)
	}
	k, err := create("k", 3)
	if err != nil {
		t.Fatal(err)
	}
	unlimited, err := create("unlimited", 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.must(w.chat(k.Secret, "m"), 200, "")
	}
	w.must(w.chat(k.Secret, "m"), 429, "api_key_rpm_exceeded")
	w.must(w.chat(unlimited.Secret, "m"), 200, "")
	w.must(w.chat(unlimited.Secret, "m"), 429, "workspace_rpm_exceeded")
	w.must(w.chat(k.Secret, "m"), 429, "api_key_rpm_exceeded") // the key's layer comes first
	w.clock.Advance(4 * time.Minute)
	setCeiling(1)
	w.must(w.chat(k.Secret, "m"), 200, "")
	w.must(w.chat(k.Secret, "m"), 429, "workspace_rpm_exceeded")
	w.balanced()
}

const slotModels = `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
`

// TestTheWorkspaceLayerTakesItsOwnElseItsTypesElseNone: RUN-5.
func TestTheWorkspaceLayerTakesItsOwnElseItsTypesElseNone(t *testing.T) {
	const defaults = "type_defaults: {personal: {rpm: 1}, enterprise: {rpm: 2}}\n"
	key := "keys:\n  - {name: k, secret: " + slotKey + "}\n"
	for _, c := range []struct {
		name, text, origin string
		admitted           int // of five
	}{
		{"its own", "type: personal\nlimits: {rpm: 3}\n" + defaults, "workspace", 3},
		{"an explicit zero", "type: personal\nlimits: {rpm: 0}\n" + defaults, "workspace", 5},
		{"a person's", "type: personal\n" + defaults, "type", 1},
		{"an enterprise's", "type: enterprise\n" + defaults, "type", 2},
		{"none", "type: personal\ntype_defaults: {enterprise: {rpm: 2}}\n", "unlimited", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.text+slotModels+key)
			answers := volley(5, 1, func(int) answer { return w.chat(slotKey, "m") })
			if got := count(answers, 200); got != c.admitted {
				t.Errorf("admitted %d, want %d", got, c.admitted)
			}
			for _, a := range answers[c.admitted:] {
				w.must(a, 429, "workspace_rpm_exceeded")
			}
			shown, err := w.admin.WorkspaceShow(context.Background(), admin.WorkspaceRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range shown.Limits {
				if l.Metric == "rpm" && !strings.HasPrefix(l.Origin, c.origin) {
					t.Errorf("origin %q, want %q", l.Origin, c.origin)
				}
			}
		})
	}
}

// breaking is a protocol with a fault of its own: it panics where it is told to.
type breaking struct {
	gateway.Protocol
	whole, feed, decode bool
}

func (b breaking) Decode(r gateway.Request) (*call.Call, *fault.Fault) {
	if b.decode {
		panic("decode")
	}
	return b.Protocol.Decode(r)
}

func (b breaking) Whole(body []byte, maxTokens int64) call.Observed {
	if b.whole {
		panic("whole")
	}
	return b.Protocol.Whole(body, maxTokens)
}

func (b breaking) NewStream(o gateway.StreamOptions) gateway.Stream {
	s := b.Protocol.NewStream(o)
	if b.feed {
		return &breakingStream{Stream: s}
	}
	return s
}

type breakingStream struct {
	gateway.Stream
	feeds int
}

func (s *breakingStream) Feed(dst, p []byte) ([]byte, error) {
	if s.feeds++; s.feeds > 1 {
		panic("feed")
	}
	return s.Stream.Feed(dst, p)
}

// TestAPanicLosesNeitherTheProcessNorTheCharge: BR-116, RES-2, ERR-6.
func TestAPanicLosesNeitherTheProcessNorTheCharge(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken breaking
		stream bool
		status int
		sent   bool
	}{
		{"before anything was sent", breaking{decode: true}, false, 500, false},
		{"at a whole answer", breaking{whole: true}, false, 500, true},
		{"in a started stream", breaking{feed: true}, true, 200, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWith(t, start, slotConfig("concurrency: 1"), func(o *app.Options) {
				o.WithChat(func(p gateway.Protocol) gateway.Protocol {
					b := c.broken
					b.Protocol = p
					return b
				})
				o.Stderr = &keptLog{}
			})
			for range 3 {
				before := w.spend("")
				a := w.chat(slotKey, "slow")
				if c.stream {
					a = w.stream(slotKey, "slow", "")
				}
				if a.status != c.status {
					t.Fatalf("got %v (%v)", a, a.err)
				}
				if c.stream && (a.err == nil || strings.Contains(a.body, "[DONE]")) {
					t.Errorf("a broken stream ended cleanly: %q", a.body)
				}
				if !c.stream {
					w.must(a, 500, "internal_error")
				}
				if charged := w.spend("") - before; c.sent != (charged >= 11_000) {
					t.Errorf("charged %s USD", charged)
				}
			}
			w.balanced()
			if ends, err := w.server.OpenUntil(context.Background()); err != nil || len(ends) != 0 {
				t.Errorf("open reservations %v (%v)", ends, err)
			}
		})
	}
}
