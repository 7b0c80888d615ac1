// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/tenant"
)

const (
	// FallbackOutputTokens bounds the hold of a model that declares neither an
	// output maximum nor a context.
	FallbackOutputTokens = 16_384
	// minContextLeft is what the context is taken to leave at least: the input
	// estimate is high, and a hold must not shrink to nothing by it (EST-2).
	minContextLeft = 1024
)

// Request is what an admission is built from.
type Request struct {
	ID         ledger.ID
	Key        *tenant.Key
	Call       *call.Call
	Snapshot   *Snapshot
	Process    string
	ClientID   string
	HoldMicros int64
}

// Plan is an admission ready to submit, and what its answer will be read with.
type Plan struct {
	Op       *ledger.Op
	Targets  []Planned // as many as Op.Candidates
	Snapshot *Snapshot
	Key      *tenant.Key
	policy   *fault.Fault
	before   int // checks of 1 and 2, which stand before the policy
}

// Planned is one candidate with its estimate.
type Planned struct {
	*Target
	// InputTokens is the estimate of EST-1, OutputTokens the bound that is
	// held, for all completions together.
	InputTokens, OutputTokens int64
	// WriteBound is the bound to write into the request; 0: leave it as it is.
	WriteBound  int64
	OutputField string
	Want        price.Want
	Worst       ledger.Amounts
}

// Note is what the call log keeps of an admission besides the ledger's own
// figures (ENGINE 14). Prompt text is never in it.
type Note struct {
	Door        string `json:"door"`
	Model       string `json:"model"` // as sent
	Stream      bool   `json:"stream,omitempty"`
	User        string `json:"user,omitempty"`
	TextBytes   int64  `json:"text_bytes"`
	Messages    int64  `json:"messages,omitempty"`
	Tools       int64  `json:"tools,omitempty"`
	Images      int64  `json:"images,omitempty"`
	InputTokens int64  `json:"input_tokens"`
	OutputBound int64  `json:"output_bound"` // held, all completions
	Completions int64  `json:"completions"`
	WorstNanos  int64  `json:"worst_nanos"`
	Message     string `json:"message,omitempty"` // of a policy refusal
}

// Build works out check 3 and the estimate, and puts every check into one
// operation. It never fails: what the policy refuses enters the operation at
// its place, so that an earlier check answers first (ORD-1, ORD-2).
func Build(r Request) *Plan {
	subject := limit.Subject{Workspace: r.Snapshot.Workspace, Key: r.Key, Zone: r.Snapshot.Zone}
	compiled := limit.Compile(subject)
	p := &Plan{Snapshot: r.Snapshot, Key: r.Key, before: len(compiled.Before)}
	target, refused := r.policy(compiled.SpendLimited)
	note := r.note()
	checks := append(make([]ledger.Check, 0, len(compiled.Before)+len(compiled.After)+1), compiled.Before...)
	op := &ledger.Op{
		Verb: ledger.Admit, ID: r.ID, Workspace: r.Snapshot.Workspace.ID, Generation: r.Snapshot.Generation,
		Process: r.Process, HoldMicros: r.HoldMicros, ClientID: r.ClientID,
		Subjects: ledger.Subjects{
			Key: r.Key.ID, Plan: r.Key.Plan, User: r.Key.User, Team: r.Key.Team, Project: r.Key.Project,
		},
	}
	if refused != nil {
		p.policy = refused
		note.Message = refused.Message
		checks = append(checks, ledger.Check{
			Kind: ledger.KindPolicy, Mode: ledger.Observe, Code: refused.Code, Name: "model policy", Scope: "key", Origin: "key",
		})
	} else {
		planned := r.estimate(target, compiled.Reserving)
		p.Targets = []Planned{planned}
		op.Candidates = []ledger.Candidate{planned.candidate()}
		note.InputTokens, note.OutputBound, note.WorstNanos = planned.InputTokens, planned.OutputTokens, planned.Worst.Spend
	}
	op.Checks = append(checks, compiled.After...)
	op.Note, _ = json.Marshal(note) // a flat struct of strings and numbers cannot fail
	p.Op = op
	return p
}

func (r *Request) note() Note {
	c := r.Call
	return Note{
		Door: string(c.Door), Model: c.Model, Stream: c.Stream, User: c.User, TextBytes: c.Prompt.TextBytes,
		Messages: c.Prompt.Messages, Tools: c.Prompt.Tools, Images: c.Prompt.Images, Completions: c.Completions,
	}
}

// policy is check 3: the model exists, is allowed and priced, and the output
// bound is not above the key's (KEY-5, KEY-6, PRC-3).
func (r *Request) policy(spendLimited bool) (*Target, *fault.Fault) {
	name := r.Call.Model
	t, via := r.Snapshot.Resolve(name)
	restricted := r.Key.AllowedModels != nil
	if t == nil && !restricted {
		f := fault.New(fault.ModelNotFound, "model %q does not exist here; GET /v1/models lists what this key may call", name)
		f.Param, f.NoRetry = "model", true
		return nil, f
	}
	if t == nil || !tenant.Allows(r.Key.AllowedModels, t.Model.Name, via) {
		f := fault.New(fault.ModelNotAllowed, "key %q may not call model %q; GET /v1/models lists what it may call", r.Key.Name, name)
		f.Param, f.NoRetry = "model", true
		return nil, f
	}
	if t.Price == nil && spendLimited {
		f := fault.New(fault.ModelUnpriced, "model %q has no price and a spend limit applies to key %q; set its price, or `price: free`", t.Model.Name, r.Key.Name)
		f.Param, f.NoRetry = "model", true
		return nil, f
	}
	if ceiling := r.Key.MaxOutputTokens; ceiling != nil && *ceiling > 0 && r.Call.OutputBound > *ceiling {
		f := fault.New(fault.MaxOutputTokensExceeded, "%s is %d, the most that key %q may ask for is %d", r.outputField(), r.Call.OutputBound, r.Key.Name, *ceiling)
		f.Param, f.NoRetry = r.outputField(), true
		return nil, f
	}
	return t, nil
}

func (r *Request) outputField() string {
	if r.Call.OutputField != "" {
		return r.Call.OutputField
	}
	return "max_tokens"
}

// estimate works out the worst case of one candidate (EST-1 to EST-3).
func (r *Request) estimate(t *Target, reserving bool) Planned {
	m := t.Model
	p := Planned{Target: t, OutputField: r.Call.OutputField}
	if p.OutputField == "" {
		p.OutputField = m.OutputField
	}
	p.InputTokens = r.Call.Prompt.InputTokens(m.BytesPerToken, m.ImageTokens)
	bound := r.outputBound(m.MaxOutputTokens, m.DefaultOutputTokens)
	if bound > 0 && r.mustWrite(bound, reserving) {
		p.WriteBound = bound
	}
	if bound <= 0 {
		bound = FallbackOutputTokens
		if m.ContextTokens > 0 {
			bound = m.ContextTokens
		}
	}
	if m.ContextTokens > 0 {
		bound = min(bound, max(minContextLeft, m.ContextTokens-p.InputTokens))
	}
	completions := max(1, r.Call.Completions)
	p.OutputTokens = bound * completions
	p.Want = price.Want{InputTokens: p.InputTokens, OutputTokens: p.OutputTokens, ServiceTier: r.Call.ServiceTier}
	p.Worst = ledger.Amounts{Tokens: p.InputTokens + p.OutputTokens, Input: p.InputTokens, Requests: 1, Slots: 1}
	if t.Price != nil {
		worst, err := t.Price.Worst(p.Want)
		if err != nil {
			// What cannot be priced is held at the largest amount there is: a
			// check that cannot tell refuses.
			worst = maxHold
		}
		p.Worst.Spend = int64(worst)
	}
	return p
}

// outputBound is the least of the client's value, the key's maximum and the
// model's; without a client's value the model's default, within the same two.
// 0 means that nothing bounds it.
func (r *Request) outputBound(modelMax, modelDefault int64) int64 {
	bound := r.Call.OutputBound
	if bound < 0 {
		bound = modelDefault
		if bound <= 0 {
			bound = modelMax
		}
	}
	if modelMax > 0 && (bound <= 0 || bound > modelMax) {
		bound = modelMax
	}
	if k := r.Key.MaxOutputTokens; k != nil && *k > 0 && (bound <= 0 || bound > *k) {
		bound = *k
	}
	return max(0, bound)
}

// mustWrite: the bound is written where a reserving limit or the key's maximum
// applies and the client sent none, and where a larger value is clamped.
func (r *Request) mustWrite(bound int64, reserving bool) bool {
	if r.Call.OutputBound >= 0 {
		return r.Call.OutputBound > bound
	}
	return reserving || r.Key.MaxOutputTokens != nil && *r.Key.MaxOutputTokens > 0
}

func (p *Planned) candidate() ledger.Candidate {
	c := ledger.Candidate{Model: p.Model.Name, Provider: p.Provider.Name, Wants: p.Worst}
	if p.Price != nil {
		c.Price, c.Free = p.Price.ID, p.Price.IsFree()
	}
	return c
}
