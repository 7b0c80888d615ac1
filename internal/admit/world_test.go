// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/tenant"
)

const (
	second = int64(time.Second / time.Microsecond)
	// start is 2026-03-02 12:00 UTC, a Monday.
	start = int64(1_772_452_800) * second
)

// world is a workspace with a key, in front of a real book.
type world struct {
	t       *testing.T
	book    *memory.Book
	clock   *clock.Manual
	ws      *tenant.Workspace
	key     *tenant.Key
	targets []*admit.Target
	who     admit.Attribution
	plans   []*tenant.Plan
	budgets []*budget.Budget
	rules   []*rule.Rule
	made    int
}

// newWorld has the models big (in 1, out 10 dollars per million tokens), free,
// unpriced and half, whose output has no price.
func newWorld(t *testing.T) *world {
	w := &world{
		t: t, clock: clock.NewManual(start), ws: tenant.NewWorkspace("ws_a", "acme"),
		key: &tenant.Key{ID: "key_1", Name: "ci"},
	}
	w.book = memory.New(memory.Options{Clock: w.clock})
	w.targets = []*admit.Target{
		w.target("big", row("big", "1", "10"), "fast"),
		w.target("free", (&price.Row{Source: price.SourceOverride, Model: "free", Free: true}).Seal()),
		w.target("unpriced", nil),
		w.target("half", (&price.Row{Source: price.SourceOverride, Model: "half", Input: rate("1")}).Seal()),
	}
	return w
}

func (w *world) target(name string, r *price.Row, aliases ...string) *admit.Target {
	return &admit.Target{
		Model: &route.Model{
			ID: "m_" + name, Name: name, Provider: "p", Upstream: name, ContextTokens: 100_000, MaxOutputTokens: 1_000, Aliases: aliases,
		},
		Provider: route.NewProvider("p", "p"), Price: r,
	}
}

func rate(usd string) *money.PerMillion {
	p, err := money.ParsePerMillionConfirmed(usd)
	if err != nil {
		panic(err)
	}
	return &p
}

func row(model, in, out string) *price.Row {
	return (&price.Row{Source: price.SourceOverride, Model: model, Input: rate(in), Output: rate(out)}).Seal()
}

func at[T any](v T) *T { return &v }

// chat is a call whose input estimate is 103 tokens.
func chat(model string) *call.Call {
	return &call.Call{
		Door: call.OpenAIChat, Model: model, OutputBound: call.NoBound, Completions: 1,
		Prompt: call.Prompt{TextBytes: 288, Messages: 1},
	}
}

func (w *world) snapshot() *admit.Snapshot {
	return admit.NewSnapshot(0, w.ws, time.UTC, w.set(), w.targets)
}

func (w *world) set() *limit.Set {
	w.t.Helper()
	set, err := limit.NewSet(w.ws.ID, w.plans, w.budgets, w.rules)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) build(c *call.Call) *admit.Plan {
	w.made++
	var random [10]byte
	binary.BigEndian.PutUint64(random[2:], uint64(w.made))
	return admit.Build(admit.Request{
		ID: ledger.NewID(w.clock.Now(), random), Key: w.key, Call: c, Snapshot: w.snapshot(), Who: w.who, Process: "p1", HoldMicros: 1800 * second,
	})
}

func (w *world) submit(op *ledger.Op) ledger.Result {
	w.t.Helper()
	op.Name(w.clock.Now())
	results, err := w.book.Apply(w.t.Context(), []*ledger.Op{op})
	if err != nil {
		w.t.Fatal(err)
	}
	return results[0]
}

func (w *world) try(c *call.Call) (*admit.Plan, ledger.Result) {
	w.t.Helper()
	p := w.build(c)
	return p, w.submit(p.Op)
}

// admit runs a request that must pass.
func (w *world) admit(c *call.Call) (*admit.Plan, ledger.Result) {
	w.t.Helper()
	p, result := w.try(c)
	if result.Verdict != ledger.Admitted {
		w.t.Fatalf("verdict %d, refusal %+v", result.Verdict, result.Refusal)
	}
	return p, result
}

// refuse runs a request that must not pass, and shows that it consumed nothing.
func (w *world) refuse(c *call.Call, code fault.Code) *fault.Fault {
	w.t.Helper()
	before := w.read()
	p, result := w.try(c)
	if result.Verdict != ledger.Refused {
		w.t.Fatalf("verdict %d, want refused by %s", result.Verdict, code)
	}
	f := p.Refuse(&result)
	if f.Code != code {
		w.t.Fatalf("refused by %s (%s), want %s", f.Code, f.Message, code)
	}
	if f.HTTPStatus() < 400 || f.Message == "" || f.Details == nil {
		w.t.Errorf("the fault is not whole: %+v", f)
	}
	for i, r := range w.read() {
		if r.Used != before[i].Used || r.Held != before[i].Held {
			w.t.Errorf("a refusal changed %s of %s", r.Check.Name, r.Check.Scope)
		}
	}
	return f
}

// refused is refuse for those who want nothing but the code.
func (w *world) refused(c *call.Call, code fault.Code) {
	w.t.Helper()
	_ = w.refuse(c, code)
}

func (w *world) read() []ledger.Reading {
	w.t.Helper()
	return w.submit(admit.ReadOp(w.snapshot(), w.key, w.who)).Readings
}

// settle ends an admitted request with a usage of input and output tokens.
func (w *world) settle(p *admit.Plan, r ledger.Result, input, output int64) admit.Charged {
	w.t.Helper()
	return w.settleCached(p, r, input, 0, output)
}

// settleCached is settle with tokens that were read from the provider's cache.
func (w *world) settleCached(p *admit.Plan, r ledger.Result, input, cached, output int64) admit.Charged {
	w.t.Helper()
	usage := call.Usage{Input: input, CachedInput: cached, Output: output, Requests: 1}
	c := admit.Settle(r.Reservation, &p.Targets[r.Candidate], admit.Ending{
		Sent: true, Outcome: "ok", Observed: call.Observed{Reported: true, Usage: usage},
	})
	if got := w.submit(c.Op); got.Verdict != ledger.Done {
		w.t.Fatalf("settle: verdict %d", got.Verdict)
	}
	return c
}

// spend makes the key use so many dollars: big's output costs 10 a million.
func (w *world) spend(dollars int64) {
	w.t.Helper()
	p, r := w.admit(chat("big"))
	if c := w.settle(p, r, 0, dollars*100_000); c.Cost != money.Nanos(dollars)*money.Dollar {
		w.t.Fatalf("charged %s", c.Cost)
	}
}

func (w *world) fund(kind ledger.EventKind, amount money.Nanos) ledger.Result {
	w.t.Helper()
	w.made++
	return w.submit(&ledger.Op{
		Verb: ledger.Fund, ID: ledger.NewID(w.clock.Now(), [10]byte{0: 1, 9: byte(w.made)}), Workspace: w.ws.ID,
		Checks: limit.Compile(limit.Subject{Workspace: w.ws, Key: &tenant.Key{ID: "key_1"}}).Before[:1],
		Entry:  &ledger.Entry{Kind: kind, Amounts: ledger.Amounts{Spend: int64(amount)}, Reason: "test"},
	})
}
