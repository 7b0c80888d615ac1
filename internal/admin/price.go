// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// maxUnits bounds each part of a usage to be priced (SPEC 1).
const maxUnits = 1_000_000_000

// PriceList is one page of prices: of the workspace's models, which are in
// force, then of the built-in catalogue (SPEC PRC-2).
func (s *Service) PriceList(ctx context.Context, a Actor, r PriceListRequest) (PriceListAnswer, error) {
	out := PriceListAnswer{Catalogue: s.Prices.Source(), Date: s.Prices.Date(), Prices: []PriceEntry{}}
	c, err := s.enter(ctx, a, OpPriceList)
	if err != nil {
		return out, err
	}
	size, err := pageSize(r.Limit)
	if err != nil {
		return out, err
	}
	start, err := offset(r.Cursor)
	if err != nil {
		return out, err
	}
	configured, err := s.configured(ctx, c, r)
	if err != nil {
		return out, answer(err)
	}
	var entries []*price.Entry
	if !r.Models {
		entries = s.Prices.List(price.Filter{Provider: r.Provider, Contains: r.Contains})
	}
	end := min(start+size, len(configured)+len(entries))
	for i := start; i < end; i++ {
		if i < len(configured) {
			out.Prices = append(out.Prices, configured[i])
			continue
		}
		entry, err := viewEntry(entries[i-len(configured)])
		if err != nil {
			return out, answer(err)
		}
		out.Prices = append(out.Prices, entry)
	}
	if end < len(configured)+len(entries) {
		out.NextCursor = cursorAfter(strconv.Itoa(end))
	}
	return out, nil
}

func offset(cursor string) (int, error) {
	place, err := placeOf(cursor)
	if err != nil || place == "" {
		return 0, err
	}
	n, err := strconv.Atoi(place)
	if err != nil || n < 0 {
		return 0, refuse("cursor", "is not one that this list answered with")
	}
	return n, nil
}

func (s *Service) configured(ctx context.Context, c *scope, r PriceListRequest) ([]PriceEntry, error) {
	models, err := s.models(ctx, c)
	if err != nil {
		return nil, err
	}
	var list []PriceEntry
	for i := range models {
		m := &models[i]
		if r.Provider != "" && m.Provider != r.Provider || !strings.Contains(strings.ToLower(m.Name), strings.ToLower(r.Contains)) {
			continue
		}
		list = append(list, PriceEntry{
			Provider: m.Provider, Model: m.Name, Configured: true, ContextTokens: m.ContextTokens, Price: m.Price,
		})
	}
	return list, nil
}

func viewEntry(e *price.Entry) (PriceEntry, error) {
	out := PriceEntry{Provider: e.Provider, Model: e.Model, ContextTokens: e.ContextTokens, Omitted: e.Omitted}
	row, ok := e.Row()
	if !ok {
		return out, nil
	}
	var err error
	out.Price, err = viewPrice(row)
	return out, err
}

// viewPrice is a row as its own JSON form has it.
func viewPrice(row *price.Row) (*PriceView, error) {
	text, err := row.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	var out PriceView
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("show price %s: %w", row.ID, err)
	}
	return &out, nil
}

// PriceShow is the price of a model of the workspace, or of the catalogue's when
// a provider is named or the workspace has no such model.
func (s *Service) PriceShow(ctx context.Context, a Actor, r PriceShowRequest) (PriceEntry, error) {
	c, err := s.enter(ctx, a, OpPriceShow)
	if err != nil {
		return PriceEntry{}, err
	}
	if r.Model == "" {
		return PriceEntry{}, refuse("model", "is required")
	}
	target, err := s.target(ctx, c, r.Model)
	if err != nil {
		return PriceEntry{}, answer(err)
	}
	if r.Provider == "" && target != nil {
		out := PriceEntry{Provider: target.Provider.Name, Model: target.Model.Name, Configured: true, ContextTokens: target.Model.ContextTokens}
		if target.Price != nil {
			out.Price, err = viewPrice(target.Price)
		}
		return out, answer(err)
	}
	entry, ok := s.Prices.Lookup(r.Provider, r.Model)
	if !ok {
		return PriceEntry{}, fault.New(fault.NotFound, "neither the workspace nor the catalogue knows the model %s", document.Quote(r.Model))
	}
	out, err := viewEntry(entry)
	return out, answer(err)
}

// target is a model of the workspace with its price; nil when it has none of
// that name.
func (s *Service) target(ctx context.Context, c *scope, model string) (*admit.Target, error) {
	snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
	if err != nil {
		return nil, err
	}
	target, _ := snapshot.Resolve(model)
	return target, nil
}

// PriceCost prices a usage with the code that charges requests: exact, rounded
// up once (SPEC MON-2, PRC-2).
func (s *Service) PriceCost(ctx context.Context, a Actor, r PriceCostRequest) (PriceCostAnswer, error) {
	c, err := s.enter(ctx, a, OpPriceCost)
	if err != nil {
		return PriceCostAnswer{}, err
	}
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return PriceCostAnswer{}, err
	}
	var model, provider string
	usage := call.Usage{Requests: 1}
	if _, err := document.Read(n, func(r *document.Reader) {
		r.String("model", &model)
		if model == "" {
			r.Fail("model", "is required")
		}
		r.String("provider", &provider)
		readUsage(r, &usage)
	}); err != nil {
		return PriceCostAnswer{}, invalid(err)
	}
	row, err := s.row(ctx, c, provider, model)
	if err != nil {
		return PriceCostAnswer{}, answer(err)
	}
	cost, err := row.Charge(usage)
	switch {
	case errors.Is(err, price.ErrUnpriced):
		return PriceCostAnswer{}, fault.New(fault.ModelUnpriced, "%v", err)
	case errors.Is(err, money.ErrOverflow):
		return PriceCostAnswer{}, invalid(err)
	case err != nil:
		return PriceCostAnswer{}, answer(err)
	}
	view, err := viewPrice(row)
	if err != nil {
		return PriceCostAnswer{}, answer(err)
	}
	return PriceCostAnswer{Cost: cost.String(), Price: *view}, nil
}

func readUsage(r *document.Reader, u *call.Usage) {
	for _, part := range []struct {
		field string
		into  *int64
	}{
		{"input", &u.Input},
		{"cached_input", &u.CachedInput},
		{"cache_write_5m", &u.CacheWrite5m},
		{"cache_write_1h", &u.CacheWrite1h},
		{"tool_input", &u.ToolInput},
		{"audio_input", &u.AudioInput},
		{"cached_audio_input", &u.CachedAudioInput},
		{"image_input", &u.ImageInput},
		{"output", &u.Output},
		{"audio_output", &u.AudioOutput},
		{"image_output", &u.ImageOutput},
		{"requests", &u.Requests},
	} {
		r.Int(part.field, part.into, 0, maxUnits)
	}
	r.String("service_tier", &u.ServiceTier)
}

// row is the price in force of a workspace's model, else the catalogue's.
func (s *Service) row(ctx context.Context, c *scope, provider, model string) (*price.Row, error) {
	if provider == "" {
		target, err := s.target(ctx, c, model)
		if err != nil {
			return nil, err
		}
		if target != nil && target.Price == nil {
			return nil, fault.New(fault.ModelUnpriced, "model %s has no price", document.Quote(model))
		}
		if target != nil {
			return target.Price, nil
		}
	}
	row, ok := s.Prices.Find(provider, model)
	if !ok {
		return nil, fault.New(fault.NotFound, "neither the workspace nor the catalogue has a price of the model %s", document.Quote(model))
	}
	return row, nil
}
