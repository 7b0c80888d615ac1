// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// cell is one request of a mode that comes to an ending under a family of limits,
// in a workspace of its own.
type cell struct {
	mode   mode
	ending ending
	family family
	h2     bool // the provider speaks HTTP/2

	w       *world
	n       int
	admin   *client.Client
	gate    *simulator.Gate
	arrived chan struct{} // closed when the provider has the request
	once    sync.Once
	faults  []string
}

func (c *cell) String() string {
	name := c.mode.String() + " / " + c.ending.name + " / " + c.family.name
	if c.h2 {
		name += " / HTTP/2"
	}
	return name
}

func (c *cell) workspace() string { return fmt.Sprintf("w%d", c.n) }
func (c *cell) secret() string    { return fmt.Sprintf("the-secret-of-the-cell-%d", c.n) }
func (c *cell) model() string     { return c.mode.matrixModel(c.ending.variant, c.h2) }

// agent names the cell's requests to the provider, which see their client's
// User-Agent: the request that is looked at, and others that use a limit up.
func (c *cell) agent(what string) string { return fmt.Sprintf("cell/%d %s", c.n, what) }

// owed is what the request costs.
func (c *cell) owed() (in, out int64, cost money.Nanos) {
	in, out = c.ending.owes(c.mode, c.ending.output(c.mode))
	return in, out, money.Nanos(in*1_000 + out*10_000)
}

func (c *cell) item() string {
	in, out, cost := c.owed()
	return c.family.item(c.workspace(), c.secret(), c.model(), cost, in+out)
}

// behaviour is what the provider does with one of the cell's requests.
func (c *cell) behaviour(what string) simulator.Behaviour {
	switch what {
	case "looked-at":
		c.once.Do(func() { close(c.arrived) })
		return c.ending.behaviour(c.mode, c.gate)
	case "spends": // more than any limit has, with few bytes
		return simulator.Behaviour{Input: simulator.Exactly(1), Output: simulator.Exactly(100_000), TextBytes: simulator.Exactly(10), Unbounded: true}
	case "waits":
		return simulator.Behaviour{Gates: []simulator.GateAt{{At: simulator.BeforeHeaders(), Gate: c.gate}}}
	default:
		return simulator.Behaviour{Input: simulator.Exactly(1), Output: simulator.Exactly(1)}
	}
}

func (c *cell) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// run sends the request, looks at what it left, and uses the limit up.
func (c *cell) run() {
	a, came := c.send()
	if came {
		c.look(a)
	}
	record := c.settled()
	c.charged(record)
	c.refused()
}

// request is one to a model at a mode's door.
func (c *cell) request(ctx context.Context, m mode, model, what string, stream bool, bound int) *http.Request {
	body := doorRequest(c.w.t, m.route.Door, model, stream, bound)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.w.server.Addr()+m.path(model), strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.secret())
	request.Header.Set("User-Agent", c.agent(what))
	request.Header.Set("Content-Type", "application/json")
	if m.route.Door == call.OpenAITranscriptions {
		request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	}
	return request
}

// send is the client of the cell; came tells whether an answer has come whole.
func (c *cell) send() (a answer, came bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request := c.request(ctx, c.mode, c.model(), "looked-at", c.mode.stream, 0)
	switch c.ending.client {
	case leavesEarly:
		go func() {
			c.here(ctx)
			cancel()
		}()
		_ = c.w.send(request)
		c.part()
		return answer{}, false
	case leavesLate:
		response, err := c.w.http.Do(request)
		if err != nil {
			c.fault("before the third event: %v", err)
			return answer{}, false
		}
		c.read(response.Body, func() { cancel() })
		_ = response.Body.Close()
		c.part()
		return answer{}, false
	case halfEarly, halfLate:
		return c.sendHalf(request), true
	default:
		return c.w.send(request), true
	}
}

// here waits until the provider has the request.
func (c *cell) here(ctx context.Context) {
	select {
	case <-c.arrived:
	case <-ctx.Done():
	}
}

// part lets the answer go on, where it is to.
func (c *cell) part() {
	if c.ending.opens {
		c.gate.Open()
	}
}

// read takes an answer in, and calls third when three events have come.
func (c *cell) read(body io.Reader, third func()) string {
	var all strings.Builder
	buffer := make([]byte, 4096)
	for seen := false; ; {
		n, err := body.Read(buffer)
		all.Write(buffer[:n])
		if !seen && c.mode.third(all.String()) {
			seen = true
			third()
		}
		if err != nil {
			if !seen && third != nil && c.ending.client == leavesLate {
				c.fault("the third event did not come: %v %q", err, all.String())
			}
			return all.String()
		}
	}
}

// sendHalf sends on a connection of which it closes the sending side.
func (c *cell) sendHalf(request *http.Request) (a answer) {
	conn, err := (&net.Dialer{}).DialContext(request.Context(), "tcp", c.w.server.Addr())
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = conn.Close() }()
	half := func() { err = conn.(*net.TCPConn).CloseWrite(); c.part() }
	if err := request.Write(conn); err != nil {
		return answer{err: err}
	}
	if c.ending.client == halfEarly {
		c.here(request.Context())
		half()
	}
	response, readErr := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil || readErr != nil {
		return answer{err: fmt.Errorf("%w, %w", err, readErr)}
	}
	defer response.Body.Close()
	a = answer{status: response.StatusCode, header: response.Header}
	a.body = c.read(response.Body, func() {
		if c.ending.client == halfLate {
			half()
		}
	})
	return a
}

// look checks what the client got.
func (c *cell) look(a answer) {
	e := &c.ending
	whole := strings.HasPrefix(a.header.Get("Content-Type"), "application/json") && !c.mode.array
	switch {
	case a.err != nil:
		c.fault("no answer: %v", a.err)
	case e.status == 200 && !e.provider:
		if a.status != 200 || c.mode.stream && !whole && c.mode.ended(a.body) == e.lax || e.lax && c.mode.failed(a.body, true) {
			c.fault("no clean end: %v", a)
		}
	case e.status == 200 && c.mode.whole(): // an error that calls itself an answer
		if a.status != 200 || !strings.Contains(a.body, `"error"`) {
			c.fault("not the provider's error: %v", a)
		}
	case a.status == 200 && c.mode.stream:
		if c.mode.ended(a.body) && e.code != "" && c.mode.route.Door.Protocol() != "gemini" || !c.mode.failed(a.body, !e.provider) {
			c.fault("a clean end: %v", a)
		}
	case e.provider:
		if a.status != e.status || a.header.Get("X-Weir-Error-Source") != "provider" || !strings.Contains(a.body, "told to fail") {
			c.fault("not the provider's word: %v", a)
		}
	default:
		problem := shaped(c.mode.route.Door, a, e.status, e.code)
		if a.status != e.status || a.code() != e.code || problem != "" {
			c.fault("got %v, want %d %s; %s", a, e.status, e.code, problem)
		}
	}
}

// settled waits for the record of the request, which is there as soon as it is
// settled, and tells what the ledger has charged the key.
func (c *cell) settled() (total admin.UsageRow) {
	var last string
	if !await(func() bool {
		list, err := c.admin.RequestList(context.Background(), admin.RequestListRequest{})
		last = fmt.Sprintf("%+v (%v)", list.Requests, err)
		return err == nil && len(list.Requests) == 1 && list.Requests[0].Outcome != "running"
	}) {
		c.fault("it does not end: %s", last)
	}
	usage, err := c.admin.Usage(context.Background(), admin.UsageRequest{})
	if err != nil {
		c.fault("usage: %v", err)
	}
	return usage.Total
}

// charged compares the ledger, and every limit that applies to the key, with what
// the request owes.
func (c *cell) charged(total admin.UsageRow) {
	in, out, cost := c.owed()
	if total.Spend != cost.String() || total.Tokens != in+out {
		c.fault("the ledger says %s USD and %d tokens, want %s and %d", total.Spend, total.Tokens, cost, in+out)
	}
	for _, l := range c.limits() {
		want := map[string]string{"spend": cost.String(), "tokens": fmt.Sprint(in + out), "requests": "1", "concurrency": "0"}[l.Metric]
		if l.Held != "0" || l.Used != want {
			c.fault("%s shows %s used and %s held, want %s and 0", l.ID, l.Used, l.Held, want)
		}
	}
}

func (c *cell) limits() []admit.LimitView {
	var a answer
	if !await(func() bool {
		a = c.w.ask(context.Background(), http.MethodGet, "/v1/key", c.secret(), "")
		return a.err == nil && a.status == 200
	}) {
		c.fault("limits: %v", a)
		return nil
	}
	return parseLimits(c.w.t, a.body)
}

// slots is how many requests run, where that is limited.
func (c *cell) slots() string {
	for _, l := range c.limits() {
		if l.Window == "in_flight" {
			return max(l.Used, l.Held)
		}
	}
	return ""
}

// main is the mode at which a limit of the cell is used up: that of its protocol
// whose answers are text.
func (c *cell) main(modes []mode) mode {
	i := slices.IndexFunc(modes, func(m mode) bool {
		return m.whole() && m.facts.text && m.route.Door.Protocol() == c.mode.route.Door.Protocol()
	})
	return modes[i]
}

// refused uses the limit up and sends the request again.
func (c *cell) refused() {
	f := &c.family
	_, _, cost := c.owed()
	if f.name == "no limit" {
		return
	}
	main := c.main(modesOf(c.w.t, c.w.server.Routes()))
	switch f.metric {
	case "slots":
		done := make(chan answer, 1)
		c.gate = simulator.NewGate()
		go func() {
			done <- c.w.send(c.request(context.Background(), main, c.model(), "waits", false, 0))
		}()
		await(func() bool { return c.slots() == "1" })
		defer func() {
			c.gate.Open()
			if a := <-done; a.status != 200 {
				c.fault("the one that had the slot: %v", a)
			}
			if n := c.slots(); n != "0" {
				c.fault("%s slots are still taken", n)
			}
		}()
	case "spend", "tokens":
		if f.exact && cost > 0 {
			break // it is used up
		}
		if a := c.w.send(c.request(context.Background(), main, c.model(), "spends", false, 0)); a.status != 200 {
			c.fault("what uses the limit up: %v", a)
		}
	}
	c.again()
}

// again is the request that must not pass.
func (c *cell) again() {
	f, model := &c.family, c.model()
	if f.model != "" {
		model = c.mode.matrixModel(f.model, false)
	}
	before := c.limits()
	a := c.w.send(c.request(context.Background(), c.mode, model, "refused", c.mode.stream, f.bound))
	if f.status == 0 || f.spares(c.mode) {
		if a.status != 200 {
			c.fault("refused: %v", a)
		}
		return
	}
	if problem := shaped(c.mode.route.Door, a, f.status, f.code); a.status != f.status || a.code() != f.code || problem != "" {
		c.fault("used up: got %v, want %d %s; %s", a, f.status, f.code, problem)
	}
	if after := c.limits(); !slices.Equal(before, after) {
		c.fault("a refused request has changed %+v to %+v", before, after)
	}
	waits, never := a.header.Get("Retry-After") != "", a.header.Get("X-Should-Retry") == "false"
	if waits != f.waits || f.status == 402 && !never {
		c.fault("Retry-After is %q, X-Should-Retry %q", a.header.Get("Retry-After"), a.header.Get("X-Should-Retry"))
	}
}

// billed compares the provider's bill with what the request owes.
func (c *cell) billed(bill map[string][]simulator.Entry) {
	in, out, _ := c.owed()
	got := bill[c.agent("looked-at")]
	switch {
	case len(got) != 1:
		c.fault("the provider has billed %d requests", len(got))
	case got[0].Input != in || got[0].Output != out:
		c.fault("the provider's bill is %d and %d tokens, the ledger's %d and %d", got[0].Input, got[0].Output, in, out)
	}
	if n := len(bill[c.agent("refused")]); n > 0 && c.family.status != 0 && !c.family.spares(c.mode) {
		c.fault("a refused request has reached the provider")
	}
}

// whereFrom reads which cell a request to the provider belongs to.
func whereFrom(agent string) (n int, what string, ok bool) {
	_, err := fmt.Sscanf(agent, "cell/%d %s", &n, &what)
	return n, what, err == nil
}
