// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// outcomes are what a list of requests can be narrowed to.
var outcomes = []string{"", "settled", "swept", "voided", "undone", "refused"}

// RequestList is one page of the call log: of ended and refused requests, the
// newest first.
func (s *Service) RequestList(ctx context.Context, a Actor, r RequestListRequest) (RequestListAnswer, error) {
	out := RequestListAnswer{Requests: []RequestSummary{}}
	c, err := s.enter(ctx, a, OpRequestList)
	if err != nil {
		return out, err
	}
	size, before, err := requestPage(r.Limit, r.Cursor)
	if err != nil {
		return out, err
	}
	if !slices.Contains(outcomes, r.Outcome) {
		return out, refuse("outcome", "%s is none of settled, swept, voided, undone, refused", document.Quote(r.Outcome))
	}
	list, err := s.calls(ctx, c, r, before, size+1)
	if err != nil {
		return out, answer(err)
	}
	if r.ClientID == "" {
		list, out.NextCursor = trim(list, size, func(l store.Call) string { return l.ID.String() })
	}
	names := s.namer(ctx, c)
	for i := range list {
		out.Requests = append(out.Requests, summarise(&list[i], names))
	}
	return out, nil
}

func (s *Service) calls(ctx context.Context, c *scope, r RequestListRequest, before ledger.ID, limit int) ([]store.Call, error) {
	if r.ClientID != "" {
		if r.Key != "" || r.Outcome != "" || r.Cursor != "" {
			return nil, refuse("client_id", "stands alone")
		}
		return s.Log.CallsByClientID(ctx, c.object.ID, r.ClientID, limit-1)
	}
	q := store.CallQuery{Outcome: r.Outcome, Before: before, Limit: limit}
	if r.Key != "" {
		object, _, err := s.findKey(ctx, c, r.Key)
		if err != nil {
			return nil, err
		}
		q.Key = object.ID
	}
	return s.Log.Calls(ctx, c.object.ID, q)
}

// RequestShow explains one request of the workspace: running, ended or refused
// (SPEC ADM-7).
func (s *Service) RequestShow(ctx context.Context, a Actor, r RequestShowRequest) (RequestAnswer, error) {
	c, err := s.enter(ctx, a, OpRequestShow)
	if err != nil {
		return RequestAnswer{}, err
	}
	id, err := ledger.ParseID(r.ID)
	if err != nil {
		return RequestAnswer{}, refuse("id", "%v", err)
	}
	call, events, err := s.Log.Call(ctx, c.object.ID, id)
	if errors.Is(err, store.ErrNotFound) {
		return RequestAnswer{}, fault.New(fault.NotFound, "workspace %s has no request %s", c.workspace.Name, id)
	}
	if err != nil {
		return RequestAnswer{}, answer(err)
	}
	out := RequestAnswer{
		RequestSummary: summarise(&call, s.namer(ctx, c)), EndedAt: instant(call.EndedAt),
		Generation: call.Generation, Place: call.Place, PriceID: call.Price, Checks: s.viewChecks(ctx, c, &call), Events: []EventView{},
	}
	if err := out.readNotes(&call); err != nil {
		return RequestAnswer{}, answer(err)
	}
	for i := range events {
		view, err := viewEvent(&events[i], &call)
		if err != nil {
			return RequestAnswer{}, answer(err)
		}
		out.Events = append(out.Events, view)
	}
	return out, nil
}

// readNotes takes what admission and settlement noted beside the ledger.
func (out *RequestAnswer) readNotes(call *store.Call) error {
	if len(call.Note) > 0 {
		var n admit.Note
		if err := json.Unmarshal(call.Note, &n); err != nil {
			return fmt.Errorf("read the note of %s: %w", call.ID, err)
		}
		out.Door, out.ModelSent, out.Stream, out.Message = n.Door, n.Model, n.Stream, n.Message
		out.KeyUser = n.KeyUser
		out.Estimate = &EstimateView{
			TextBytes: n.TextBytes, Messages: n.Messages, Tools: n.Tools, Images: n.Images, InputTokens: n.InputTokens,
			OutputTokens: n.OutputBound, Completions: n.Completions, Worst: usd(n.WorstNanos),
		}
		if err := out.readPrice(n.Price); err != nil {
			return fmt.Errorf("read the price of %s: %w", call.ID, err)
		}
	}
	if len(call.End) > 0 {
		var e admit.End
		if err := json.Unmarshal(call.End, &e); err != nil {
			return fmt.Errorf("read the end of %s: %w", call.ID, err)
		}
		out.End = &EndView{
			Outcome: e.Outcome, Status: e.Status, AnsweredModel: e.Answered, Marks: e.Marks, Charge: usd(e.ChargeNanos),
			Usage: e.Usage, SentAt: instant(e.SentAt), FirstByteAt: instant(e.FirstByteAt), EndedAt: instant(e.EndedAt),
		}
		if e.Named != nil {
			out.End.NamedCost, out.End.OwnCost = usd(e.Named.Nanos), usd(e.Named.OwnNanos)
		}
	}
	return nil
}

// readPrice shows the row that the request was priced by, in force or not.
func (out *RequestAnswer) readPrice(text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	row, err := price.DecodeRow(text)
	if err != nil {
		return err
	}
	out.Price, err = viewPrice(row)
	return err
}

func summarise(l *store.Call, name func(string) string) RequestSummary {
	return RequestSummary{
		ID: l.ID.String(), At: instant(l.At), Outcome: l.Outcome, Code: l.Code, Key: l.Key, KeyName: name(l.Key),
		User: l.Subjects.User, Team: l.Subjects.Team, Project: l.Subjects.Project, Model: l.Model, Provider: l.Provider,
		Spend: usd(l.Spend), Tokens: l.Tokens, ClientID: l.ClientID, Count: l.Count,
	}
}

// viewChecks lists the checks as the decision saw them. Several may have failed:
// the first in the published order is the answer (SPEC ORD-1).
func (s *Service) viewChecks(ctx context.Context, c *scope, call *store.Call) []CheckView {
	list := make([]CheckView, 0, len(call.Checks))
	refused := false
	for i := range call.Checks {
		view := viewCheck(c, &call.Checks[i], s.windowOf(ctx, c, &call.Checks[i]))
		view.Place = i + 1
		switch {
		case call.Checks[i].Pass:
			view.Verdict = "pass"
		case refused:
			view.Verdict = "would refuse"
		default:
			view.Verdict, refused = "refused", true
		}
		list = append(list, view)
	}
	return list
}

// windowOf is the window of a budget or rule as it is now; none when the limit
// counts another one since, or cannot be read.
func (s *Service) windowOf(ctx context.Context, c *scope, r *ledger.CheckRecord) window.Spec {
	kind := map[ledger.Kind]string{ledger.KindFixed: KindBudget, ledger.KindSliding: KindRateLimit}[r.Kind]
	if kind == "" {
		return window.Spec{}
	}
	o, err := s.Objects.Object(ctx, c.object.ID, kind, r.Counter.Limit)
	if err != nil || o.Epoch != r.Counter.Epoch {
		return window.Spec{}
	}
	if kind == KindBudget {
		if b, err := decodeBudget(&o); err == nil {
			spec, _ := b.Spec() // without its zone the window is told by its end
			return spec
		}
		return window.Spec{}
	}
	check := ledger.Check{}
	if rule, err := decodeRule(&o); err == nil {
		check = limit.RuleCheck(c.object.ID, rule, "")
	}
	return check.Window
}

func viewCheck(c *scope, r *ledger.CheckRecord, spec window.Spec) CheckView {
	check := ledger.Check{
		Counter: r.Counter, Kind: r.Kind, Mode: r.Mode, Wants: r.Wants, Amount: r.Amount, Credit: r.Credit, Span: r.Span,
		Name: r.Name, Scope: r.Scope, Origin: r.Origin, Zone: c.zone, Window: spec,
	}
	l := admit.ViewLimit(&ledger.Reading{Check: &check, Amount: r.Amount, Used: r.Used, Held: r.Held, Wanted: r.Wanted, ResetsAt: r.ResetsAt})
	view := CheckView{
		ID: l.ID, Name: l.Name, Scope: l.Scope, Origin: l.Origin, Metric: l.Metric, Window: l.Window, Admission: l.Admission,
		Amount: l.Amount, Used: l.Used, Held: l.Held, Wanted: figure(r.Wants, r.Wanted), ResetsAt: l.ResetsAt, Code: r.Code,
	}
	if r.Kind == ledger.KindPolicy {
		view.Metric, view.Wanted = "", ""
	}
	return view
}

// figure is an amount in the metric's unit: dollars for spend.
func figure(m ledger.Metric, v int64) string {
	if m == ledger.Spend {
		return usd(v)
	}
	return strconv.FormatInt(v, 10)
}

func viewEvent(e *ledger.Event, call *store.Call) (EventView, error) {
	view := EventView{
		Kind: e.Kind.String(), Attempt: e.Attempt, At: instant(e.At), Model: e.Model, Provider: e.Provider, PriceID: e.Price,
		Spend: usd(e.Spend), Tokens: e.Tokens, Reason: e.Reason, Actor: e.Actor, Charges: []ChargeView{},
	}
	if len(e.Detail) > 0 {
		if err := json.Unmarshal(e.Detail, &view.Usage); err != nil {
			return view, fmt.Errorf("read an event of %s: %w", e.ID, err)
		}
	}
	for i := range e.Charges {
		charge := &e.Charges[i]
		metric := ledger.Spend
		for j := range call.Holds {
			if call.Holds[j].Counter == charge.Counter {
				metric = call.Holds[j].Charges
			}
		}
		view.Charges = append(view.Charges, ChargeView{
			Limit: charge.Counter.Limit, Subject: charge.Counter.Subject, Amount: figure(metric, charge.Amount), Credit: charge.Credit,
		})
	}
	return view, nil
}
