// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/price"
)

// maxUnits bounds each part of a usage to be priced, seconds too (SPEC 1).
const maxUnits = 1_000_000_000

// PriceCost prices a usage with the code that charges requests: exact, rounded
// up once, and shown part by part (SPEC MON-2, PRC-2).
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
	charge, err := row.Explain(usage)
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
	return viewCharge(charge, usage.ServiceTier, row, view), nil
}

func viewCharge(b *price.Breakdown, tier string, row *price.Row, view *PriceView) PriceCostAnswer {
	out := PriceCostAnswer{Cost: b.Cost.String(), Exact: b.Exact, AboveTokens: b.AboveTokens, Price: *view, Lines: []CostLine{}}
	for _, l := range b.Lines {
		out.Lines = append(out.Lines, CostLine{Part: l.Part, Units: l.Units, Rate: l.Rate, Per: l.Per, Amount: l.Amount, Scaled: l.Scaled})
	}
	if tier != "" {
		out.ServiceTier, out.TierUnpriced = tier, !row.PricesTier(tier)
		if !row.PricesTierByPart(tier) {
			out.Factor = b.Factor.String()
		}
	}
	return out
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
		{"images", &u.Units.Images},
		{"requests", &u.Requests},
	} {
		r.Int(part.field, part.into, 0, maxUnits)
	}
	readSeconds(r, "audio_input_seconds", &u.Units.AudioInputMicros)
	readSeconds(r, "audio_output_seconds", &u.Units.AudioOutputMicros)
	r.String("service_tier", &u.ServiceTier)
	tools := r.Node("tool_calls")
	if tools == nil || tools.Kind != document.Object {
		return
	}
	r.Object("tool_calls", func(r *document.Reader) {
		for _, m := range tools.Members {
			var calls int64
			r.Int(m.Name, &calls, 0, maxUnits)
			if !u.Units.Tools.Set(m.Name, calls) {
				r.Fail(m.Name, "is one of more than %d tools, or has no name", call.MaxTools)
			}
		}
	})
}

// readSeconds reads a decimal of seconds into microseconds.
func readSeconds(r *document.Reader, field string, into *int64) {
	r.Decimal(field, func(text string) error {
		n, err := money.ParseNumber(text)
		if err != nil {
			return err
		}
		micros, err := n.Shift(6 - 9).Exact() // a microsecond stands for a nano-dollar
		if err != nil || int64(micros) > maxUnits*1_000_000 {
			return errors.New("must be seconds from 0 to 1000000000, with at most 6 decimal places")
		}
		*into = int64(micros)
		return nil
	}, func() { *into = 0 })
}

// row is the price in force of a workspace's model, else what was imported, else
// the catalogue's.
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
	row, _, err := s.underlying(ctx, c, provider, model)
	if err == nil && row == nil {
		err = fault.New(fault.ModelUnpriced, "model %s has no price", document.Quote(model))
	}
	return row, err
}
