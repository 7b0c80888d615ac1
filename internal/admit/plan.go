// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// maxLabel bounds, in bytes, each text of a client or provider that goes into a
// record or a message: no name is longer (KEY-5).
const maxLabel = 200

// ProcessLimit names the process's own bucket in records (RAT-6).
const ProcessLimit = "local rate limit"

// Request is what an admission is built from.
type Request struct {
	ID         ledger.ID
	Key        *tenant.Key
	Call       *call.Call
	Snapshot   *Snapshot
	Who        Attribution
	Process    string
	ClientID   string
	HoldMicros int64
	// OutputCap bounds the output of each completion further; 0: not. It is what
	// Plan.Shrunk said would fit (BUD-10).
	OutputCap int64
	// Held is which providers keep what the call names (DIS-8).
	Held route.Holdings
	// Tentative: the caller builds a refused admission again, smaller if Shrunk
	// says so, and at last as it was.
	Tentative bool
}

// Plan is an admission ready to submit, and what its answer will be read with.
type Plan struct {
	Op       *ledger.Op
	Targets  []Planned // as many as Op.Candidates
	Snapshot *Snapshot
	Key      *tenant.Key
	Who      Attribution
	// OutputCap is the request's: the bound that a short budget lowered it to.
	OutputCap int64
	policy    *fault.Fault
	throttled *fault.Fault
}

// Note is what the call log keeps of an admission besides the ledger's own
// figures (ENGINE 14). Prompt text is never in it.
type Note struct {
	Door   string `json:"door"`
	Model  string `json:"model"` // as sent, cut at 200 bytes
	Stream bool   `json:"stream,omitempty"`
	User   string `json:"user,omitempty"` // as the body has it
	// KeyUser is the key's own user where the request named another (KEY-7).
	KeyUser     string `json:"key_user,omitempty"`
	TextBytes   int64  `json:"text_bytes"`
	Messages    int64  `json:"messages,omitempty"`
	Tools       int64  `json:"tools,omitempty"`
	Images      int64  `json:"images,omitempty"`
	InputTokens int64  `json:"input_tokens"`
	OutputBound int64  `json:"output_bound"` // held, all completions
	Completions int64  `json:"completions"`
	WorstNanos  int64  `json:"worst_nanos"`
	// Price is the row that the request is priced by, as package price writes it.
	Price   json.RawMessage `json:"price,omitempty"`
	Message string          `json:"message,omitempty"` // of a policy refusal
}

// Build works out check 3 and the estimate, and puts every check into one
// operation. It never fails: what the policy refuses enters the operation at
// its place, so that an earlier check answers first (ORD-1, ORD-2).
func Build(r Request) *Plan {
	compiled := r.Snapshot.checks(r.Key, r.Who)
	p := &Plan{Snapshot: r.Snapshot, Key: r.Key, Who: r.Who, OutputCap: r.OutputCap}
	note := r.note()
	op := &ledger.Op{
		Verb: ledger.Admit, ID: r.ID, Workspace: r.Snapshot.Workspace.ID, Generation: r.Snapshot.Generation,
		Process: r.Process, HoldMicros: r.HoldMicros, ClientID: r.ClientID,
		Subjects: ledger.Subjects{
			Key: r.Key.ID, Plan: r.Key.Plan, User: r.Who.user(r.Key), Team: r.Key.Team, Project: r.Key.Project,
			Tags: r.Who.Tags,
		},
	}
	target, refused := r.resolve()
	if target != nil {
		own, effect := compiled.own(target)
		planned := r.estimate(target, effect.Reserving)
		refused = r.policy(&planned, effect.SpendLimited)
		p.Targets = []Planned{planned}
		// A model that the policy refuses is a candidate all the same: check 2
		// sees its worst case, and answers before check 3 (ORD-1, BAL-6).
		candidate := planned.candidate()
		candidate.Checks = own
		op.Candidates = []ledger.Candidate{candidate}
		note.InputTokens, note.OutputBound, note.WorstNanos = planned.InputTokens, planned.OutputTokens, planned.Worst.Spend
		note.Price = planned.priced
	}
	var policy *ledger.Check
	if refused != nil {
		p.policy = refused
		note.Message = refused.Message
		policy = &ledger.Check{
			Kind: ledger.KindPolicy, Mode: ledger.Observe, Code: refused.Code, Name: "model policy", Scope: "key", Origin: "key",
		}
	}
	op.Checks = compiled.with(policy)
	if r.Call.Door.Counts() {
		op.Checks = untold(op.Checks)
		for i := range op.Candidates {
			op.Candidates[i].Checks = untold(op.Candidates[i].Checks)
		}
	}
	op.Quiet = r.Tentative && p.shrinkable(op)
	op.Note = note.Encode()
	p.Op = op
	return p
}

// untold are the checks of what a request that only counts tokens takes: it uses
// none, so no limit on tokens says anything of it, not one in debt either.
func untold(checks []ledger.Check) []ledger.Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c ledger.Check) bool {
		return c.Wants.String() == ledger.Tokens.String() || c.Charges.String() == ledger.Tokens.String()
	})
}

// Asked is what the first candidate takes of the process's own bucket in tokens;
// ok is false where check 3 refuses the request, which takes nothing.
func (p *Plan) Asked() (inputTokens int64, ok bool) {
	if p.policy != nil || len(p.Targets) == 0 {
		return 0, false
	}
	return p.Targets[0].InputTokens, true
}

// Throttle puts the refusal of the process's own bucket last of check 5: every
// limit that is asked before it answers first, and what it refuses writes nothing
// (ORD-1, ORD-2, RAT-6).
func (p *Plan) Throttle(f *fault.Fault) {
	p.throttled = f
	p.Op.Checks = append(slices.Clip(p.Op.Checks), ledger.Check{
		Kind: ledger.KindPolicy, Mode: ledger.Observe, Code: f.Code, Name: ProcessLimit, Scope: "process", Origin: "process",
	})
}

func (r *Request) note() Note {
	c := r.Call
	n := Note{
		Door: string(c.Door), Model: label(c.Model), Stream: c.Stream, User: label(c.User), TextBytes: c.Prompt.TextBytes,
		Messages: c.Prompt.Messages, Tools: c.Prompt.Tools, Images: c.Prompt.Images, Completions: c.Completions,
	}
	if r.Who.User != "" && r.Who.User != r.Key.User {
		n.KeyUser = r.Key.User
	}
	return n
}

// label cuts a text that somebody outside chose, for a record or a message.
func label(s string) string {
	if len(s) <= maxLabel {
		return s
	}
	return strings.ToValidUTF8(s[:maxLabel], "") + "…"
}

// resolve is the first part of check 3: the model exists and is allowed. With a
// list, a name that leads to nothing allowed is not allowed, whether or not it
// exists: nobody learns names by trying (KEY-5).
func (r *Request) resolve() (*Target, *fault.Fault) {
	t, via := r.Snapshot.Resolve(r.Call.Model)
	if t == nil && !r.Snapshot.listed(r.Key) {
		return nil, r.refuseModel(fault.ModelNotFound, "model %q does not exist here; GET /v1/models lists what this key may call", label(r.Call.Model))
	}
	if t == nil || !r.Snapshot.allows(r.Key, t, via) {
		return nil, r.refuseModel(fault.ModelNotAllowed, "key %q may not call model %q; GET /v1/models lists what it may call", r.Key.Name, label(r.Call.Model))
	}
	if door, speaks := r.Call.Door.Protocol(), t.Provider.Protocol; door != speaks {
		return nil, r.refuseModel(fault.ModelNotFound, "model %q is not served at this door: its provider speaks the %s protocol, and this door the %s one", label(r.Call.Model), speaks, door)
	}
	if id, missing := r.missing(t.Provider); missing {
		return nil, r.refuseState(id)
	}
	return t, nil
}

// policy is the rest of check 3: the model is priced where a spend limit
// applies (PRC-3), and the client's output bound is not above the key's (KEY-6).
func (r *Request) policy(p *Planned, spendLimited bool) *fault.Fault {
	if p.unpriced && spendLimited {
		return r.refuseModel(fault.ModelUnpriced, "%s and a spend limit applies to key %q; set its price, \"0\" where the provider takes nothing, or `price: free`", p.lacks(), r.Key.Name)
	}
	ceiling := r.Snapshot.outputCeiling(r.Key)
	if ceiling == 0 || r.Call.OutputBound <= ceiling {
		return nil
	}
	field := r.Call.OutputField
	if field == "" {
		field = "max_tokens"
	}
	f := fault.New(fault.MaxOutputTokensExceeded, "%s is %d, the most that key %q may ask for is %d", field, r.Call.OutputBound, r.Key.Name, ceiling)
	f.Param, f.NoRetry = field, true
	f.Details = &fault.Details{
		LimitID: "key.max_output_tokens:" + r.Key.ID, Scope: "key", Subject: r.Key.Name, Metric: ledger.Tokens.String(),
		Amount: figureOf(ceiling), Wanted: figureOf(r.Call.OutputBound),
	}
	if r.Snapshot.Workspace.HideAmounts {
		f.Message = fmt.Sprintf("%s is more than key %q may ask for; ask for less, or leave it out", field, r.Key.Name)
		hideAmounts(f)
	}
	return f
}

// lacks says what has no price: the model, or a part that the request could use.
func (p *Planned) lacks() string {
	if p.Price != nil {
		if _, err := p.Price.Worst(p.Want); err != nil {
			return err.Error()
		}
	}
	return fmt.Sprintf("model %q has no price", p.Model.Name)
}

func (r *Request) refuseModel(code fault.Code, format string, args ...any) *fault.Fault {
	f := fault.New(code, format, args...)
	f.Param, f.NoRetry = "model", true
	f.Details = &fault.Details{LimitID: "model policy", Scope: "key", Subject: r.Key.Name}
	return f
}
