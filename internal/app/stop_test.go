// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
)

const stopKey = "the-secret-of-the-stopping-key"

const stopConfig = `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=40", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}
  - {name: long, provider: sim, upstream: "sim?in=20&out=400&hang=after:50", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}
  - {name: silent, provider: sim, upstream: "sim?hang=headers", context_tokens: 128000, max_output_tokens: 4096, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + stopKey + `}
`

// stopping begins to stop the program and returns when it is refusing; the
// channel tells how it ended.
func (w *world) stopping() <-chan error {
	w.t.Helper()
	done := make(chan error, 1)
	server := w.server
	w.server = nil
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done <- server.Stop(ctx)
	}()
	address := "http://" + server.Addr() + "/readyz"
	w.eventually("the program to refuse", func() bool {
		response, err := w.http.Get(address)
		if err != nil {
			return true
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	})
	return done
}

// TestStoppingUnderLoadLosesNothing: STO-4, BR-160. In each round 64 requests
// run, streams among them, when the program is told to stop, and others keep
// coming.
func TestStoppingUnderLoadLosesNothing(t *testing.T) {
	const running, late, rounds = 64, 32, 5
	w := newWorld(t, stopConfig)
	for range rounds {
		before := w.provider.Bill().Requests
		w.provider.Hold()
		address := w.server.Addr()
		send := func(i int) answer {
			body := chatBody("m", "")
			if i%2 == 0 {
				body = chatBody("m", `"stream":true`)
			}
			return w.at(address, body)
		}
		first := make(chan []answer, 1)
		go func() { first <- volley(running, running, send) }()
		w.await("the running requests", func(n simulator.Totals) bool { return n.Held == running })
		done := w.stopping()
		for _, a := range volley(late, 8, send) {
			if a.err == nil && (a.status != 503 || a.code() != "service_unavailable" || a.header.Get("Retry-After") != "2") {
				t.Errorf("a request that came after the stop: %v", a)
			}
		}
		w.provider.Release()
		for _, a := range <-first {
			if a.err != nil || a.status != 200 || strings.Contains(a.body, `"error"`) {
				t.Errorf("a request that ran: %v (%v)", a, a.err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := w.provider.Bill().Requests - before; n != running {
			t.Fatalf("%d requests reached the provider, want %d", n, running)
		}
		w.start()
		w.settled("1", "10")
	}
}

// at sends a chat completion to a fixed address.
func (w *world) at(address, body string) answer {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+stopKey)
	return w.send(request)
}

// TestWhatOutlastsTheDrainIsCutAndCharged: STO-4, RES-4. A stream is charged
// what it has shown, a request without an answer its input; neither is the
// provider's failure.
func TestWhatOutlastsTheDrainIsCutAndCharged(t *testing.T) {
	w := newWorld(t, "bounds: {drain_timeout: 1s}\n"+stopConfig)
	silent := make(chan answer, 1)
	address := w.server.Addr()
	shown, stream := w.follow(address, chatBody("long", `"stream":true`), 50)
	go func() { silent <- w.at(address, chatBody("silent", "")) }()
	w.await("both", func(n simulator.Totals) bool { return n.InFlight == 2 })
	<-shown
	began := time.Now()
	if err := <-w.stopping(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second || took > 10*time.Second {
		t.Errorf("the stop took %s, the drain is 1s", took)
	}
	if text := <-stream; !strings.Contains(text, `data: {"error":`) || strings.Contains(text, "[DONE]") {
		t.Errorf("the cut stream ended with %q", text)
	}
	if a := <-silent; a.status != 503 || a.code() != "service_unavailable" {
		t.Errorf("the cut request: %v (%v)", a, a.err)
	}
	w.start()
	w.balanced()
	// 50 events of 16 bytes: 267 tokens. 11 tokens of input each.
	if got := w.spend(""); int64(got) != (11+2670+11)*1000 {
		t.Errorf("charged %s USD, want 2692 µ$", got)
	}
}

// follow streams a chat completion; the first channel is closed when it has
// shown so many content events, the second gives all of it.
func (w *world) follow(address, body string, events int) (<-chan struct{}, <-chan string) {
	shown, all := make(chan struct{}), make(chan string, 1)
	go func() {
		var text strings.Builder
		defer func() { all <- text.String() }()
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+stopKey)
		response, err := w.http.Do(request)
		if err != nil {
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), `"content":"`) && !strings.Contains(lines.Text(), `"content":""`) {
				if events--; events == 0 {
					close(shown)
				}
			}
		}
	}()
	return shown, all
}

// TestAClientThatTakesNothingHoldsNoSlot: RUN-3, STO-5. It opens a long stream
// and never reads.
func TestAClientThatTakesNothingHoldsNoSlot(t *testing.T) {
	w := newWorldWith(t, start, `
models:
  - {name: big, provider: sim, upstream: "sim?in=20&out=200000&bytes=16000000", context_tokens: 1280000, price: {input: "1", output: "10"}}
  - {name: m, provider: sim, upstream: "sim?in=20&out=40", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: `+stopKey+`, limits: {concurrency: 1}}
`, func(o *app.Options) { o.WithWriteTimeout(time.Second) })
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(chatBody("big", `"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+stopKey)
	response, err := w.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := bufio.NewReaderSize(response.Body, 64).ReadByte(); err != nil {
		t.Fatal(err)
	}
	w.must(w.chat(stopKey, "m"), 429, "api_key_concurrency_exceeded")
	w.eventually("the slot", func() bool { return w.chat(stopKey, "m").status == 200 })
	w.balanced()
}
