// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// The tests of this package use the whole program as a client would: a real
// store, a real listener, the simulated provider. Time is theirs to set.

const (
	providerCredential = "provider-credential-of-the-test"
	// start is Monday 2026-07-20, noon in UTC.
	start = int64(1_784_548_800_000_000)
	// patience bounds waiting for something that must happen.
	patience = 30 * time.Second
)

// world is one gateway with one simulated provider.
type world struct {
	t        *testing.T
	store    string   // as the configuration names it
	peers    []*world // others on the same store, which requests go to in turn
	turn     *atomic.Int64
	state    string // where a replica keeps its own files; "": beside its configuration
	provider *simulator.Server
	clock    *clock.Manual
	server   *app.Server
	config   string
	http     *http.Client
	admin    *client.Client
	change   func(*app.Options)
}

// newWorld starts a program with the given configuration. %PROVIDER% stands for
// the provider's address, and the lines for store and provider are added.
func newWorld(t *testing.T, text string) *world {
	t.Helper()
	return newWorldAt(t, start, text)
}

func newWorldAt(t *testing.T, at int64, text string) *world {
	t.Helper()
	return newWorldWith(t, at, text, nil)
}

// newWorldWith starts a program with changed options.
func newWorldWith(t *testing.T, at int64, text string, change func(*app.Options)) *world {
	t.Helper()
	return newWorldOn(t, "", at, text, change)
}

// newWorldOn starts a program on a store of its own, or, given one, on that.
func newWorldOn(t *testing.T, store string, at int64, text string, change func(*app.Options)) *world {
	t.Helper()
	w := &world{t: t, turn: &atomic.Int64{}, store: store, clock: clock.NewManual(at), change: change}
	w.provider = simulator.New(simulator.Options{Keys: []string{providerCredential}, KeptRequests: 4096})
	if err := w.provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.provider.Release()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.provider.Stop(ctx); err != nil {
			t.Errorf("stop the provider: %v", err)
		}
	})
	w.config = filepath.Join(t.TempDir(), "weir.yaml")
	w.store = newStore(w)
	w.write(text)
	w.start()
	w.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	t.Cleanup(func() {
		w.http.CloseIdleConnections()
		w.stop()
	})
	w.spread(peersWanted())
	return w
}

func (w *world) write(text string) {
	w.t.Helper()
	head := "listen: 127.0.0.1:0\nstore: " + w.store + "\n"
	if !strings.Contains(text, "providers:") {
		head += "providers:\n  - {name: sim, protocol: openai, base_url: \"" + w.provider.URL() + "/v1\", api_key: " + providerCredential + "}\n"
	}
	text = strings.ReplaceAll(text, "%PROVIDER%", w.provider.URL()+"/v1")
	text = strings.ReplaceAll(text, "%AZURE%", w.provider.URL()+"/openai")
	if err := os.WriteFile(w.config, []byte(head+text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) options() app.Options {
	o := app.Options{
		ConfigPath: w.config, Env: w.env,
		Stdout: io.Discard, Stderr: testLog{w.t}, LogLevel: "warn", Clock: w.clock,
	}
	if w.change != nil {
		w.change(&o)
	}
	return o
}

// env gives a replica files of its own, beside a configuration that all have.
func (w *world) env(name string) (string, bool) {
	return w.state, name == config.EnvStateDir && w.state != ""
}

func (w *world) start() {
	w.t.Helper()
	server, err := app.Start(context.Background(), w.options())
	if err != nil {
		w.t.Fatalf("start: %v", err)
	}
	w.server = server
	w.attach()
}

// attach reaches the operations of the program that runs.
func (w *world) attach() {
	w.t.Helper()
	base, closeFn, err := app.Connect(context.Background(), w.options())
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	w.t.Cleanup(func() { _ = closeFn() })
	w.admin = client.New(client.Options{Transport: base})
}

// stop ends the program; calling it again does nothing.
func (w *world) stop() {
	if w.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	w.server = nil
}

// restart stops the program and starts it again on the same store.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// testLog sends the program's log to the test's. It may be written to after the
// test's end by nothing: the program is stopped first.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) code() string {
	var shape struct {
		Error struct {
			Code    any             `json:"code"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.body), &shape) // a body without a code has none
	if code, ok := shape.Error.Code.(string); ok {
		return code
	}
	var gemini []struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(shape.Error.Details, &gemini) // likewise
	if len(gemini) == 0 {
		return ""
	}
	return gemini[0].Reason
}

func (a answer) String() string { return fmt.Sprintf("%d %s %s", a.status, a.code(), a.body) }

// chatBody is a chat completion of a model; extra members come first.
func chatBody(model, extra string) string {
	if extra != "" {
		extra += ","
	}
	return `{` + extra + `"model":"` + model + `","messages":[{"role":"user","content":"hello there"}]}`
}

// next is the world's program, or it and its peers in turn.
func (w *world) next() *world {
	if n := w.turn.Add(1) % int64(len(w.peers)+1); n > 0 {
		return w.peers[n-1]
	}
	return w
}

func (w *world) url(path string) string { return "http://" + w.next().server.Addr() + path }

// do sends one request. Where several programs share a store, what its answer
// left to be settled is settled when do returns: the next request may go to
// another one.
func (w *world) do(ctx context.Context, method, path, key, body string, headers ...string) answer {
	to := w.next()
	a := to.ask(ctx, method, path, key, body, headers...)
	if len(w.peers) > 0 && method == http.MethodPost {
		_ = to.server.Settle(context.WithoutCancel(ctx), key) // in an outage the spool has it
	}
	return a
}

func (w *world) ask(ctx context.Context, method, path, key, body string, headers ...string) answer {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+w.server.Addr()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{err: err}
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return w.send(request)
}

func (w *world) send(request *http.Request) answer {
	response, err := w.http.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	header := response.Header.Clone()
	for name, v := range response.Trailer {
		header[name] = v
	}
	return answer{status: response.StatusCode, header: header, body: string(read), err: err}
}

// chat sends one whole chat completion and gets its answer.
func (w *world) chat(key, model string, headers ...string) answer {
	return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", key, chatBody(model, ""), headers...)
}

func (w *world) stream(key, model, extra string) answer {
	if extra != "" {
		extra = "," + extra
	}
	return w.do(context.Background(), http.MethodPost, "/v1/chat/completions", key, chatBody(model, `"stream":true`+extra))
}

// must fails the test unless the answer has the status, and for refusals the code.
func (w *world) must(a answer, status int, code string) answer {
	w.t.Helper()
	if a.err != nil || a.status != status || a.code() != code {
		w.t.Fatalf("got %v (err %v), want %d %s", a, a.err, status, code)
	}
	return a
}

// volley sends n requests, at most parallel at once, and collects the answers.
func volley(n, parallel int, send func(i int) answer) []answer {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			answers[i] = send(i)
		})
	}
	wg.Wait()
	return answers
}

func count(answers []answer, status int) (n int) {
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}

// await waits for the provider's totals to be so.
func (w *world) await(what string, want func(simulator.Totals) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.provider.Await(ctx, want); err != nil {
		w.t.Fatalf("waiting for %s: %v; totals %+v", what, err, w.provider.Bill().Totals)
	}
}

// spend is what the ledger says a key has spent, in nano-dollars; empty: all keys.
func (w *world) spend(key string) money.Nanos {
	w.t.Helper()
	usage, err := w.admin.Usage(context.Background(), admin.UsageRequest{By: "key", From: "2000-01-01", To: "2100-01-01"})
	if err != nil {
		w.t.Fatalf("usage: %v", err)
	}
	var total money.Nanos
	for _, row := range usage.Rows {
		if key != "" && row.KeyName != key {
			continue
		}
		n, err := money.ParseSignedUSD(row.Spend)
		if err != nil {
			w.t.Fatal(err)
		}
		total += n
	}
	return total
}

// balanced checks that the books balance: nothing differs from its records.
func (w *world) balanced() {
	w.t.Helper()
	report, err := w.admin.Verify(context.Background(), admin.VerifyRequest{})
	if err != nil {
		w.t.Fatalf("verify: %v", err)
	}
	if len(report.Differences) > 0 {
		w.t.Fatalf("the books do not balance: %+v", report.Differences)
	}
}

// billed is the provider's bill at prices per million tokens, in nano-dollars.
func (w *world) billed(inputUSD, outputUSD string) money.Nanos {
	w.t.Helper()
	in, err := money.ParsePerMillion(inputUSD)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := money.ParsePerMillion(outputUSD)
	if err != nil {
		w.t.Fatal(err)
	}
	totals := w.provider.Bill().Totals
	var sum money.Sum
	for _, part := range []struct {
		price money.PerMillion
		n     int64
	}{{in, totals.Input}, {out, totals.Output}} {
		if err := sum.Add(part.price, part.n); err != nil {
			w.t.Fatal(err)
		}
	}
	n, err := sum.Nanos()
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// settled checks that the ledger charged exactly the provider's bill, that the
// books balance, and that nothing is held any more.
func (w *world) settled(inputUSD, outputUSD string) {
	w.t.Helper()
	if w.shared() { // another replica's settlement may take 100 ms (RES-11)
		w.eventually("the ledger to be the bill", func() bool { return w.spend("") == w.billed(inputUSD, outputUSD) })
	}
	w.balanced()
	if got, want := w.spend(""), w.billed(inputUSD, outputUSD); got != want {
		w.t.Fatalf("the ledger says %s USD, the provider's bill is %s USD", got, want)
	}
}

// fund tops the workspace up.
func (w *world) fund(usd string) {
	w.t.Helper()
	_, err := w.admin.FundsBook(context.Background(), admin.FundRequest{Body: admin.FundFields{Kind: "top_up", Amount: usd}})
	if err != nil {
		w.t.Fatalf("top up %s: %v", usd, err)
	}
}
