// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/store"
)

// subjectID is the id of the live key or plan that a field of a request names.
func (s *Service) subjectID(ctx context.Context, c *scope, kind, ref, field string) (string, error) {
	object, err := s.live(ctx, c, kind, ref)
	var known *fault.Fault
	if errors.As(err, &known) && known.Code == fault.NotFound {
		return "", refuse(field, "there is no %s %s in workspace %s", words[kind], document.Quote(ref), c.workspace.Name)
	}
	return object.ID, err
}

// planNamed refuses the name of a plan that there is not. Keys name a plan by
// its name.
func (s *Service) planNamed(ctx context.Context, c *scope, name, field string) error {
	if name == "" {
		return nil
	}
	if err := s.protect(ctx, c); err != nil {
		return err
	}
	object, err := s.Objects.ByName(ctx, c.object.ID, KindPlan, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && object.RetiredAt > 0 {
		return refuse(field, "there is no plan %s in workspace %s", document.Quote(name), c.workspace.Name)
	}
	return err
}

// modelNamed is the model that a name or alias leads to: a limit on it counts it
// however it is named in a request (SPEC RAT-2, BR-177).
func (s *Service) modelNamed(ctx context.Context, c *scope, name string) (string, error) {
	snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
	if err != nil {
		return "", err
	}
	target, _ := snapshot.Resolve(name)
	if target == nil {
		return "", refuse("model", "workspace %s has no model %s", c.workspace.Name, document.Quote(name))
	}
	return target.Model.Name, nil
}

func (s *Service) providerNamed(ctx context.Context, c *scope, name string) error {
	list, err := s.visible(ctx, c, KindProvider)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Name == name {
			return nil
		}
	}
	return refuse("provider", "workspace %s has no provider %s", c.workspace.Name, document.Quote(name))
}

// inDollars puts a limit of micro-dollars, or limit_usd, as the decimal string
// that the domain reads (SPEC MON-3, MON-4). metric is the budget's when the
// request does not say one.
func inDollars(n *document.Node, metric string) (*document.Node, error) {
	if said := n.Member("metric"); said != nil {
		metric = said.Text
	}
	micros, dollars := n.Member("limit"), n.Member("limit_usd")
	if dollars == nil && (micros == nil || metric != budget.Spend) {
		return n, nil
	}
	amount, err := spend("limit", micros, dollars)
	switch {
	case metric == "":
		return nil, refuse("metric", "is required")
	case metric != budget.Spend:
		return nil, refuse("limit_usd", "is for the metric %s: write limit", budget.Spend)
	case err != nil:
		return nil, err
	}
	next := n.Without("limit", "limit_usd")
	next.Members = append(next.Members, document.Member{
		Name: "limit", Value: &document.Node{Kind: document.String, Text: amount.String()},
	})
	return next, nil
}

// spend reads an amount above zero: whole micro-dollars in a field, or dollars
// in the field of that name with _usd.
func spend(field string, micros, dollars *document.Node) (money.Nanos, error) {
	const usdSuffix = "_usd"
	var amount money.Nanos
	var err error
	switch {
	case micros != nil && dollars != nil:
		return 0, refuse(field+usdSuffix, "says the same as %s: leave one out", field)
	case dollars != nil:
		field += usdSuffix
		if dollars.Kind != document.String {
			return 0, refuse(field, "must be a decimal string of dollars such as \"1.50\"")
		}
		amount, err = money.ParseUSD(dollars.Text)
	case micros == nil:
		return 0, refuse(field, "is required, or %s", field+usdSuffix)
	default:
		whole, bad := strconv.ParseInt(micros.Text, 10, 64)
		if micros.Kind != document.Number || bad != nil || strings.Trim(micros.Text, "-0123456789") != "" {
			return 0, refuse(field, "must be a whole number of micro-dollars: 1500000 is $1.50; a decimal string of dollars goes into %s", field+usdSuffix)
		}
		amount, err = money.FromMicros(whole)
	}
	switch {
	case err != nil:
		return 0, refuse(field, "%v", err)
	case amount == 0:
		return 0, refuse(field, "must be above 0")
	default:
		return amount, nil
	}
}
