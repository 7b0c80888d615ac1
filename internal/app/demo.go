// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// Bounds and defaults of a demonstration.
const (
	demoRequests    = 72
	demoMaxRequests = 1_000 // the simulator keeps its log of so many
	demoParallel    = 8
	demoMaxParallel = 64
	demoMaxAnswer   = 1 << 20
	demoTimeout     = 30 * time.Second // of one request, and of the end
)

// What the demonstration serves. Prices are nano-dollars per million tokens:
// the figures that demoConfig writes as "2.5" and "10".
const (
	demoModel       = "demo"
	demoCapUSD      = "0.05"
	demoInputNanos  = 2_500_000_000
	demoOutputNanos = 10_000_000_000
	demoCredential  = "simulated-provider-credential"
	demoCapped      = "intern"
	demoFree        = "team"
)

// demoConfig is the configuration file of a demonstration.
const demoConfig = `listen: 127.0.0.1:0
store: %q
providers:
  - {name: simulated, protocol: openai, base_url: %q, api_key: %s}
models:
  - {name: %s, provider: simulated, upstream: sim-gpt, context_tokens: 128000, max_output_tokens: 4096, price: {input: "2.5", output: "10"}}
`

// DemoOptions of a demonstration; zero values are its defaults.
type DemoOptions struct {
	Requests, Parallel int
	Once               bool // end by itself
	Stdout             io.Writer
	Live, Color        bool // Stdout is a terminal: lines are redrawn in place
}

// DemoRun is what a demonstration found.
type DemoRun struct {
	Charged, Refused int
	// Ledger is the sum of the charges, Bill the simulated provider's tokens at
	// their prices: nano-dollars.
	Ledger, Bill money.Nanos
	// Late requests were sent after their key's first refusal, and admitted.
	Late int
	// Differences is how many figures `verify` found wrong.
	Differences int
	// Balanced: the cap refused, none was late, and the books agree.
	Balanced bool
}

// demo is one demonstration.
type demo struct {
	DemoOptions
	view     *demoView
	provider *simulator.Server
	server   *Server
	admin    *demoAdmin
	client   *http.Client
	began    time.Time
	config   string
	keys     map[string]string // secrets by name

	mu       sync.Mutex
	running  int
	answers  []demoAnswer
	refusals int
	first    *demoAnswer // refused first
	late     int
}

// Demo starts a simulated provider and a gateway on free ports, sends a volley
// of concurrent requests of two keys, one of them with a small day cap, shows
// what became of them and whether the books balance to the nano-dollar, and then
// stays up until ctx ends, unless it is to run once. What it made is removed.
func Demo(ctx context.Context, o DemoOptions) (run *DemoRun, err error) {
	if o.Requests == 0 {
		o.Requests = demoRequests
	}
	if o.Parallel == 0 {
		o.Parallel = demoParallel
	}
	if o.Requests < 8 || o.Requests > demoMaxRequests || o.Parallel < 1 || o.Parallel > demoMaxParallel {
		return nil, fmt.Errorf("a demonstration has 8 to %d requests, 1 to %d at once", demoMaxRequests, demoMaxParallel)
	}
	folder, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demonstration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	d := &demo{DemoOptions: o, view: newDemoView(o), began: time.Now(), config: filepath.Join(folder, "weir.yaml"), keys: map[string]string{}}
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	if err := d.start(ctx, folder); err != nil {
		return nil, err
	}
	if err := d.makeKeys(ctx); err != nil {
		return nil, err
	}
	if err := d.volley(ctx); err != nil {
		return nil, err
	}
	if run, err = d.audit(ctx); err != nil {
		return nil, err
	}
	if o.Once {
		return run, nil
	}
	d.view.invite(d)
	<-ctx.Done()
	return run, nil
}

// start starts the provider and the gateway.
func (d *demo) start(ctx context.Context, folder string) error {
	d.view.title()
	phase := time.Now()
	d.provider = simulator.New(simulator.Options{Keys: []string{demoCredential}, Script: demoScript})
	if err := d.provider.Start(); err != nil {
		return err
	}
	d.view.fact("provider", "simulated, "+d.provider.URL()+"/v1", time.Since(phase))

	phase = time.Now()
	text := fmt.Sprintf(demoConfig, "sqlite:"+filepath.Join(folder, "weir.db"), d.provider.URL()+"/v1", demoCredential, demoModel)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the demonstration's configuration: %w", err)
	}
	options := Options{ConfigPath: d.config, Env: noEnv, Stdout: io.Discard, Stderr: io.Discard, LogLevel: "error"}
	server, err := Start(ctx, options)
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	d.server = server
	if d.admin, err = connectDemo(ctx, options); err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: d.Parallel}
	d.client = &http.Client{Transport: transport, Timeout: demoTimeout}
	d.view.fact("gateway", d.base()+", embedded SQLite, every commit synced", time.Since(phase))
	return nil
}

// noEnv: a demonstration is the same whatever the environment holds.
func noEnv(string) (string, bool) { return "", false }

func (d *demo) base() string { return "http://" + d.server.Addr() }

// stop ends what was started, in reverse. The ends are bounded.
func (d *demo) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoTimeout)
	defer cancel()
	var all []error
	if d.client != nil {
		d.client.CloseIdleConnections()
	}
	if d.admin != nil {
		all = append(all, d.admin.close())
	}
	if d.server != nil {
		all = append(all, d.server.Stop(ctx))
	}
	if d.provider != nil {
		all = append(all, d.provider.Stop(ctx))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("end the demonstration: %w", err)
	}
	return nil
}

// makeKeys makes the two keys.
func (d *demo) makeKeys(ctx context.Context) error {
	phase := time.Now()
	for _, key := range []struct{ name, dayCap string }{{demoCapped, demoCapUSD}, {demoFree, ""}} {
		secret, err := d.admin.createKey(ctx, key.name, key.dayCap)
		if err != nil {
			return fmt.Errorf("make key %s: %w", key.name, err)
		}
		d.keys[key.name] = secret
	}
	d.view.fact("keys", demoCapped+" may spend $"+demoCapUSD+" a day, "+demoFree+" has no cap", time.Since(phase))
	return nil
}

// demoScript answers a request by its text: how long it takes and how much it
// says differ, and repeat in every run.
func demoScript(r simulator.Request) simulator.Behaviour {
	b := r.Scripted
	b.Latency = time.Duration(250+r.TextBytes*37%400) * time.Millisecond
	b.Output = simulator.Exactly(120 + r.TextBytes*53%230)
	return b
}

// billNanos prices the simulated provider's bill apart from everything that the
// gateway computed: tokens times prices, each request rounded up once (MON-2).
func billNanos(bill simulator.Bill) money.Nanos {
	sum := new(big.Int)
	for _, e := range bill.Log {
		cost := new(big.Int).Mul(big.NewInt(e.Input), big.NewInt(demoInputNanos))
		cost.Add(cost, new(big.Int).Mul(big.NewInt(e.Output), big.NewInt(demoOutputNanos)))
		cost.Add(cost, big.NewInt(999_999))
		sum.Add(sum, cost.Div(cost, big.NewInt(1_000_000)))
	}
	return money.Nanos(sum.Int64()) // bounded: demoMaxRequests of a few cents
}

// demoAnswer is what became of one request.
type demoAnswer struct {
	number                   int
	key                      string
	status                   int
	code, message, requestID string
	// late: it was sent after its key's first refusal had arrived.
	late bool
}

// volley sends the requests, several at once, every fourth of them by the key
// that has no cap, half of each key's as streams, and shows how spend fills the
// cap meanwhile. It ends early when a request fails in a way that no limit explains.
func (d *demo) volley(ctx context.Context) error {
	phase := time.Now()
	d.view.volley(d.Requests, d.Parallel)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var senders sync.WaitGroup
	for range d.Parallel {
		senders.Go(func() {
			for number := range numbers {
				if err := d.send(ctx, number); err != nil {
					cancel(err)
				}
			}
		})
	}
	watched := make(chan struct{})
	watching, unwatch := context.WithCancel(ctx)
	go func() { defer close(watched); d.watch(watching) }()
	for number := 1; number <= d.Requests && ctx.Err() == nil; number++ {
		select {
		case numbers <- number:
		case <-ctx.Done():
		}
	}
	close(numbers)
	senders.Wait()
	unwatch()
	<-watched
	if err := context.Cause(ctx); err != nil {
		d.view.release()
		return err
	}
	state, err := d.state(ctx)
	if err != nil {
		return err
	}
	d.view.settled(state, d.late, time.Since(phase))
	return nil
}

// send sends one request, as any client would, and reads its answer to the end.
func (d *demo) send(ctx context.Context, number int) error {
	a := demoAnswer{number: number, key: demoCapped}
	if number%4 == 0 {
		a.key = demoFree
	}
	body, err := demoBody(number)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.running++
	a.late = a.key == demoCapped && d.first != nil
	d.mu.Unlock()
	err = d.exchange(ctx, body, &a)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	if err != nil {
		return err
	}
	d.answers = append(d.answers, a)
	switch {
	case a.status == http.StatusOK && a.late:
		d.late++
	case a.status == http.StatusOK:
	case a.key == demoCapped && a.status == http.StatusPaymentRequired:
		d.refusals++
		if d.first == nil {
			d.first = &a
		}
	default:
		return fmt.Errorf("request %d of %s was answered %d %s: %s", number, a.key, a.status, a.code, a.message)
	}
	return nil
}

func demoBody(number int) ([]byte, error) {
	text := "Tell me something about the number " + strconv.Itoa(number) + strings.Repeat(", and more", number%7) + "."
	body := map[string]any{
		"model": demoModel, "max_tokens": 400, "messages": []map[string]string{{"role": "user", "content": text}},
	}
	if number%8 < 4 {
		body["stream"] = true
	}
	return json.Marshal(body)
}

// exchange is one HTTP exchange; a names who asks and takes the answer.
func (d *demo) exchange(ctx context.Context, body []byte, a *demoAnswer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base()+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request %d: %w", a.number, err)
	}
	request.Header.Set("Authorization", "Bearer "+d.keys[a.key])
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("send request %d: %w", a.number, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nobody wants it
	answer, err := io.ReadAll(io.LimitReader(response.Body, demoMaxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer to request %d: %w", a.number, err)
	}
	a.status, a.requestID = response.StatusCode, response.Header.Get("X-Weir-Request-Id")
	if a.status == http.StatusOK {
		return nil
	}
	var refused struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if err := json.Unmarshal(answer, &refused); err != nil {
		return fmt.Errorf("request %d was answered %d without an error object: %w", a.number, a.status, err)
	}
	a.code, a.message = refused.Error.Code, refused.Error.Message
	return nil
}

// watch draws the state until ctx ends.
func (d *demo) watch(ctx context.Context) {
	ticker := time.NewTicker(demoFrame)
	defer ticker.Stop()
	for {
		if state, err := d.state(ctx); err == nil {
			d.view.frame(state)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// state asks for both keys' use as their holders can: `GET /v1/key` (KEY-8).
func (d *demo) state(ctx context.Context) (s demoState, err error) {
	if s.capped, err = d.keyState(ctx, demoCapped); err != nil {
		return s, err
	}
	if s.free, err = d.keyState(ctx, demoFree); err != nil {
		return s, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.running, s.refused = d.running, d.refusals
	for _, a := range d.answers {
		switch {
		case a.status != http.StatusOK:
		case a.key == demoFree:
			s.freeAnswered++
		default:
			s.answered++
		}
	}
	return s, nil
}

func (d *demo) keyState(ctx context.Context, name string) (view admit.KeyView, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base()+"/v1/key", http.NoBody)
	if err != nil {
		return view, fmt.Errorf("ask for the key's state: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+d.keys[name])
	response, err := d.client.Do(request)
	if err != nil {
		return view, fmt.Errorf("ask for the key's state: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nobody wants it
	if response.StatusCode != http.StatusOK {
		return view, fmt.Errorf("ask for the key's state: status %d", response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, demoMaxAnswer)).Decode(&view); err != nil {
		return view, fmt.Errorf("read the key's state: %w", err)
	}
	return view, nil
}

// audit holds what the gateway booked against what the provider served.
func (d *demo) audit(ctx context.Context) (*DemoRun, error) {
	if d.first != nil {
		d.view.heading("The first refusal")
		explained, err := d.admin.RequestShow(ctx, admin.RequestShowRequest{ID: d.first.requestID})
		if err != nil {
			return nil, fmt.Errorf("explain the refusal: %w", err)
		}
		d.view.refusal(d.first, &explained)
	}
	phase := time.Now()
	usage, err := d.admin.Usage(ctx, admin.UsageRequest{By: "key"})
	if err != nil {
		return nil, fmt.Errorf("ask for the usage: %w", err)
	}
	ledger, err := money.ParseSignedUSD(usage.Total.Spend)
	if err != nil {
		return nil, fmt.Errorf("read the usage: %w", err)
	}
	bill := d.provider.Bill()
	run := &DemoRun{Charged: int(usage.Total.Requests), Refused: d.refusals, Ledger: ledger, Bill: billNanos(bill), Late: d.late}
	verified, err := d.admin.Verify(ctx, admin.VerifyRequest{})
	if err != nil {
		return nil, fmt.Errorf("verify the books: %w", err)
	}
	run.Differences = len(verified.Differences)
	run.Balanced = d.first != nil && run.Late == 0 && run.Ledger == run.Bill && run.Differences == 0 && verified.Balanced &&
		int64(run.Charged) == bill.Requests && run.Charged+run.Refused == d.Requests
	d.view.books(run, &bill, &verified, time.Since(phase))
	d.view.verdict(run, time.Since(d.began))
	return run, nil
}

// demoAdmin is the admin API, reached as the command line reaches it.
type demoAdmin struct {
	*client.Client
	close func() error
}

func connectDemo(ctx context.Context, o Options) (*demoAdmin, error) {
	transport, closeFn, err := Connect(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("reach the admin API: %w", err)
	}
	return &demoAdmin{client.New(client.Options{Transport: transport}), closeFn}, nil
}

// createKey makes a key and returns its secret; dayCap "" is none.
func (a *demoAdmin) createKey(ctx context.Context, name, dayCap string) (secret string, err error) {
	body := admin.KeyFields{Name: admin.Some(name)}
	if dayCap != "" {
		body.Caps = admin.Some(admin.CapFields{Day: admin.Some(dayCap)})
	}
	key, err := a.KeyCreate(ctx, admin.KeyCreateRequest{Body: body})
	if err != nil {
		return "", err
	}
	return key.Secret, nil
}
