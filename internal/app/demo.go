// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// Bounds and defaults of a demonstration.
const (
	demoRequests    = 72
	demoMaxRequests = 1_000
	demoParallel    = 8
	demoMaxParallel = 64
	demoMaxReplicas = 8
	demoEach        = 4 // requests at once for each of several gateways
	demoMaxAnswer   = 1 << 20
	demoTimeout     = 30 * time.Second // of one request, and of the end
)

// What the demonstration serves. Prices are nano-dollars per million tokens:
// the figures that demoConfig writes as "2.5" and "10".
const (
	demoModel       = "demo"
	demoCapUSD      = "0.05" // of a single gateway
	demoBudgetUSD   = "0.12" // of several
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
	// Replicas are gateways that share one PostgreSQL, one of which is killed. One
	// or none is a gateway on SQLite.
	Replicas int
	// Store is the address of a PostgreSQL database that holds nothing, for
	// replicas; empty: a server is brought up for them.
	Store string
	// Program is this program's file, which replicas are started from.
	Program     string
	Once        bool // end by itself
	Stdout      io.Writer
	Live, Color bool // Stdout is a terminal: lines are redrawn in place
}

// demo is one demonstration.
type demo struct {
	DemoOptions
	view     *demoView
	provider *simulator.Server
	server   *Server    // the single gateway
	fleet    *demoFleet // several
	admin    *demoAdmin
	client   *http.Client
	began    time.Time
	folder   string
	config   string
	limitUSD string
	keys     map[string]string // secrets by name

	mu       sync.Mutex
	gateways []*demoGateway
	sent     int // requests that were begun
	answers  []demoAnswer
	refusals int
	first    *demoAnswer // refused first
	late     int
	killed   *demoGateway
}

// demoGateway is one gateway and what became of the requests that it was sent.
type demoGateway struct {
	name, base                string
	down                      bool
	ok, refused, cut, running int
}

// Demo starts a simulated provider and a gateway on free ports, sends a volley
// of concurrent requests of two keys, one of them with a small limit, shows what
// became of them and whether the books balance to the nano-dollar, and then stays
// up until ctx ends, unless it is to run once. What it made is removed.
//
// Several gateways are processes on one PostgreSQL. One of them is killed in the
// middle of the volley and started again after it.
func Demo(ctx context.Context, o DemoOptions) (run *DemoRun, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demonstration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	d := &demo{
		DemoOptions: o, began: time.Now(), folder: folder, config: filepath.Join(folder, "weir.yaml"),
		limitUSD: demoCapUSD, keys: map[string]string{},
	}
	if o.Replicas > 1 {
		d.limitUSD = demoBudgetUSD
	}
	d.view = newDemoView(o, d.limitUSD)
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	for _, step := range []func(context.Context) error{d.start, d.makeKeys, d.volley, d.recover} {
		if err := step(ctx); err != nil {
			return nil, err
		}
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

func (o *DemoOptions) defaults() error {
	if o.Requests == 0 {
		o.Requests = demoRequests
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Parallel == 0 {
		o.Parallel = demoParallel
		if o.Replicas > 1 {
			o.Parallel = demoEach * o.Replicas
		}
	}
	switch {
	case o.Requests < 8 || o.Requests > demoMaxRequests || o.Parallel < 1 || o.Parallel > demoMaxParallel:
		return fmt.Errorf("a demonstration has 8 to %d requests, 1 to %d at once", demoMaxRequests, demoMaxParallel)
	case o.Replicas < 1 || o.Replicas > demoMaxReplicas:
		return fmt.Errorf("a demonstration has 1 to %d replicas", demoMaxReplicas)
	case o.Replicas == 1 && o.Store != "":
		return errors.New("a demonstration on PostgreSQL is one of several gateways: say --replicas 3")
	}
	return nil
}

// start starts the provider and the gateways.
func (d *demo) start(ctx context.Context) error {
	d.view.title(d.Replicas)
	phase := time.Now()
	d.provider = simulator.New(simulator.Options{Keys: []string{demoCredential}, Script: demoScript, KeptRequests: 2 * demoMaxRequests})
	if err := d.provider.Start(); err != nil {
		return err
	}
	d.view.fact("provider", "simulated, "+d.provider.URL()+"/v1", time.Since(phase))
	d.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: d.Parallel}, Timeout: demoTimeout}
	if d.Replicas > 1 {
		return d.startFleet(ctx)
	}
	return d.startSingle(ctx)
}

// configure writes the configuration of every gateway.
func (d *demo) configure(store string) error {
	text := fmt.Sprintf(demoConfig, store, d.provider.URL()+"/v1", demoCredential, demoModel)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the demonstration's configuration: %w", err)
	}
	return nil
}

func (d *demo) startSingle(ctx context.Context) error {
	phase := time.Now()
	if err := d.configure("sqlite:" + filepath.Join(d.folder, "weir.db")); err != nil {
		return err
	}
	server, err := Start(ctx, d.options())
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	d.server = server
	d.gateways = []*demoGateway{{name: "weir", base: "http://" + server.Addr()}}
	if d.admin, err = connectDemo(ctx, d.options()); err != nil {
		return err
	}
	d.view.fact("gateway", d.base()+", embedded SQLite, every commit synced", time.Since(phase))
	return nil
}

// startFleet starts the gateways that share a PostgreSQL.
func (d *demo) startFleet(ctx context.Context) error {
	phase := time.Now()
	var err error
	if d.fleet, err = newDemoFleet(ctx, d.DemoOptions, d.folder, d.config); err != nil {
		return err
	}
	d.view.fact("store", d.fleet.described, time.Since(phase))
	phase = time.Now()
	if err := d.configure(d.fleet.store); err != nil {
		return err
	}
	addresses, err := d.fleet.start(ctx)
	if err != nil {
		return err
	}
	for i, address := range addresses {
		d.gateways = append(d.gateways, &demoGateway{name: demoName(i), base: "http://" + address})
	}
	if d.admin, err = connectDemo(ctx, d.options()); err != nil {
		return err
	}
	d.view.fact("gateways", fmt.Sprintf("%s to %s, a process each, sharing the store alone", demoName(0), demoName(d.Replicas-1)), time.Since(phase))
	return nil
}

func demoName(i int) string { return "weir-" + strconv.Itoa(i+1) }

// options lead to the first gateway.
func (d *demo) options() Options {
	return Options{ConfigPath: d.config, Env: noEnv, Stdout: io.Discard, Stderr: io.Discard, LogLevel: "error"}
}

// noEnv: a demonstration is the same whatever the environment holds.
func noEnv(string) (string, bool) { return "", false }

// base is the address of the first gateway, which is never killed.
func (d *demo) base() string { return d.gateways[0].base }

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
	if d.fleet != nil {
		all = append(all, d.fleet.stop(ctx))
	}
	if d.provider != nil {
		all = append(all, d.provider.Stop(ctx))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("end the demonstration: %w", err)
	}
	return nil
}

// makeKeys makes the two keys and the limit of one of them: a day cap for a single
// gateway, a hard budget for several.
func (d *demo) makeKeys(ctx context.Context) error {
	phase := time.Now()
	dayCap := ""
	if d.fleet == nil {
		dayCap = d.limitUSD
	}
	for _, key := range []struct{ name, dayCap string }{{demoCapped, dayCap}, {demoFree, ""}} {
		secret, err := d.admin.createKey(ctx, key.name, key.dayCap)
		if err != nil {
			return fmt.Errorf("make key %s: %w", key.name, err)
		}
		d.keys[key.name] = secret
	}
	text := demoCapped + " may spend $" + d.limitUSD + " a day, " + demoFree + " has no cap"
	if d.fleet != nil {
		if err := d.admin.createBudget(ctx, demoCapped, d.limitUSD); err != nil {
			return fmt.Errorf("make the budget of %s: %w", demoCapped, err)
		}
		text = demoCapped + " has a budget of $" + d.limitUSD + " a day, " + demoFree + " has none"
	}
	d.view.fact("keys", text, time.Since(phase))
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
