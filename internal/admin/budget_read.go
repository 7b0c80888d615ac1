// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// perSubject marks a limit that each of several subjects has for itself.
const perSubject = "subject"

// readsAtOnce bounds the counters that one operation reads.
const readsAtOnce = 200

// budgetAnswer is a budget as it was written, with its use. Of what is retired
// there is none.
func (s *Service) budgetAnswer(ctx context.Context, m made) (BudgetAnswer, error) {
	if m.object.RetiredAt > 0 {
		b, err := decodeBudget(&m.object)
		if err != nil {
			return BudgetAnswer{}, answer(err)
		}
		return s.viewBudget(&m.object, b, s.labels(ctx, m.c)), nil
	}
	list, err := s.viewBudgets(ctx, m.c, []store.Object{m.object})
	if err != nil {
		return BudgetAnswer{}, answer(err)
	}
	list[0].Replayed = m.replayed
	return list[0], nil
}

// viewBudgets shows budgets with their live use.
func (s *Service) viewBudgets(ctx context.Context, c *scope, objects []store.Object) ([]BudgetAnswer, error) {
	list := make([]BudgetAnswer, 0, len(objects))
	var checks []ledger.Check
	var of []int
	labels := s.labels(ctx, c)
	for i := range objects {
		b, err := decodeBudget(&objects[i])
		if err != nil {
			return nil, err
		}
		list = append(list, s.viewBudget(&objects[i], b, labels))
		if list[i].Per != "" {
			continue
		}
		check, err := limit.BudgetCheck(c.object.ID, b, b.Subject)
		if err != nil {
			return nil, err
		}
		checks, of = append(checks, check), append(of, i)
	}
	readings, err := s.readChecks(ctx, c, checks)
	if err != nil {
		return nil, err
	}
	for i := range readings {
		if err := list[of[i]].use(&readings[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readChecks reads the counters of checks as they stand now.
func (s *Service) readChecks(ctx context.Context, c *scope, checks []ledger.Check) ([]ledger.Reading, error) {
	var readings []ledger.Reading
	for len(checks) > 0 {
		size := min(len(checks), readsAtOnce)
		op := &ledger.Op{Verb: ledger.Read, Workspace: c.object.ID, Checks: checks[:size]}
		op.Name(c.at)
		result, err := s.read(ctx, op)
		if err != nil {
			return nil, err
		}
		if len(result.Readings) != size {
			return nil, fmt.Errorf("read counters: %d readings of %d", len(result.Readings), size)
		}
		readings, checks = append(readings, result.Readings...), checks[size:]
	}
	return readings, nil
}

// labels finds the names of keys and plans by their ids, each once. A name is a
// help to the reader: without it the id still tells.
func (s *Service) labels(ctx context.Context, c *scope) func(kind, id string) string {
	known := map[string]string{}
	return func(kind, id string) string {
		if id == "" {
			return ""
		}
		name, ok := known[id]
		if !ok {
			if object, err := s.Objects.Object(ctx, c.object.ID, kind, id); err == nil {
				name = object.Name
			}
			known[id] = name
		}
		return name
	}
}

func (s *Service) viewBudget(o *store.Object, b *budget.Budget, label func(kind, id string) string) BudgetAnswer {
	out := BudgetAnswer{
		ID: o.ID, Name: b.Name, Scope: string(b.Scope), Subject: b.Subject, Metric: b.Metric, Limit: b.Limit,
		Period: b.Period, Zone: b.Zone, Model: b.Model, Provider: b.Provider, WarnPercent: b.WarnPercent,
		Enforcement: b.Enforcement, CountCached: !b.Uncached, CountFrom: b.CountFrom, System: b.System,
		Source: o.Source, Origin: o.Origin, Version: o.Version, CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	if out.Zone == "" {
		out.Zone = "UTC"
	}
	if b.Metric == budget.Spend {
		out.Limit, out.LimitUSD = money.Nanos(b.Limit).MicrosDown(), usd(b.Limit)
	}
	if b.WindowMicros > 0 {
		out.Window = document.FormatDuration(b.WindowMicros)
	}
	kind := ""
	switch b.Scope {
	case budget.ScopeKey:
		kind = KindKey
	case budget.ScopePlan:
		kind = KindPlan
	default:
	}
	if kind != "" {
		out.SubjectName = label(kind, b.Subject)
	}
	if b.Owner != "" {
		out.OwnerKind, out.Owner, out.OwnerName = kind, b.Owner, label(kind, b.Owner)
	}
	if b.Scope == budget.ScopePlan || b.Scope != budget.ScopeOrg && b.Subject == "" {
		out.Per = perSubject
	}
	if b.SkipMissingUsage {
		out.OnMissing = "skip"
	}
	if b.Shrink != nil {
		out.OnShort = "refuse"
		if *b.Shrink {
			out.OnShort = "shrink"
		}
	}
	return out
}

// use puts the state of a budget's counter beside it: used and held round up,
// remaining down (SPEC MON-3), instants in the zone of its window (BR-051).
func (out *BudgetAnswer) use(r *ledger.Reading) error {
	zone, err := window.Zone(out.Zone)
	if err != nil {
		return err
	}
	out.WindowStart = local(r.Check.Counter.Window, zone)
	if r.ResetsAt > 0 {
		out.ResetsAt = local(r.ResetsAt, zone)
	}
	remaining, raised := r.Remaining(), raisedBy(r)
	if out.Metric != budget.Spend {
		out.Used, out.Held, out.Remaining = &r.Used, &r.Held, &remaining
		if raised > 0 {
			out.Raised = &raised
		}
		return nil
	}
	out.Used, out.UsedUSD = up(r.Used), usd(r.Used)
	out.Held, out.HeldUSD = up(r.Held), usd(r.Held)
	out.Remaining, out.RemainUSD = down(remaining), usd(remaining)
	if raised > 0 {
		out.Raised, out.RaisedUSD = down(raised), usd(raised)
	}
	return nil
}

func up(nanos int64) *int64 {
	micros := money.Nanos(nanos).MicrosUp()
	return &micros
}

func down(nanos int64) *int64 {
	micros := money.Nanos(nanos).MicrosDown()
	return &micros
}

// local writes an instant in a zone, with its offset.
func local(at int64, zone *time.Location) string {
	return time.UnixMicro(at).In(zone).Format(time.RFC3339)
}
