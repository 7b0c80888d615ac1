// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/admin"
)

type pricesCmd struct {
	List pricesListCmd `cmd:"" help:"List prices: the workspace's models, then the built-in catalogue."`
	Show pricesShowCmd `cmd:"" help:"Show one model's price in full."`
	Cost pricesCostCmd `cmd:"" help:"Say what a usage costs, exactly as it would be charged."`
}

type pricesListCmd struct {
	Contains string `arg:"" optional:"" help:"A part of the model's name."`
	Provider string `placeholder:"NAME" help:"Only this provider of the catalogue."`
	Models   bool   `help:"Only the workspace's own models."`
	page
	reach
}

func (c *pricesListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PriceList(s.ctx, admin.PriceListRequest{
			Provider: c.Provider, Contains: c.Contains, Models: c.Models, Cursor: c.Cursor, Limit: c.Limit,
		})
		return show(a, answer, err, writePrices)
	})
}

func writePrices(w io.Writer, answer *admin.PriceListAnswer) error {
	t := &table{empty: "no prices", columns: []column{
		{"model", left}, {"provider", left}, {"input", point}, {"cached", point}, {"output", point}, {"context", right}, {"source", left},
	}}
	for _, e := range answer.Prices {
		context := ""
		if e.ContextTokens > 0 {
			context = count(e.ContextTokens)
		}
		p := e.Price
		switch {
		case p == nil:
			t.add(e.Model, e.Provider, "unpriced", "", "", context, "")
		case p.Free:
			t.add(e.Model, e.Provider, "free", "", "", context, p.Source)
		default:
			t.add(e.Model, e.Provider, usd(p.Input), usd(p.CachedInput), usd(p.Output), context, p.Source)
		}
	}
	if err := t.writeThen(w, answer.NextCursor); err != nil {
		return err
	}
	return line(w, "\nUS dollars per million tokens; built-in: "+printable(answer.Catalogue)+", "+printable(answer.Date))
}

// priced names the model whose price is meant.
type priced struct {
	Model    string `arg:"" help:"A model of the workspace; with --provider, one of the catalogue."`
	Provider string `placeholder:"NAME" help:"The catalogue's name of a provider."`
	reach
}

type pricesShowCmd struct{ priced }

func (c *pricesShowCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PriceShow(s.ctx, admin.PriceShowRequest{Model: c.Model, Provider: c.Provider})
		return show(a, answer, err, writePrice)
	})
}

// rate is one part of a price.
type rate struct{ name, value, unit string }

func rates(p *admin.PriceView) []rate {
	var list []rate
	for _, r := range []rate{
		{"input", p.Input, ""},
		{"cached input", p.CachedInput, ""},
		{"cache write, 5 min", p.CacheWrite5m, ""},
		{"cache write, 1 h", p.CacheWrite1h, ""},
		{"output", p.Output, ""},
		{"audio input", p.AudioInput, ""},
		{"cached audio input", p.CachedAudioInput, ""},
		{"audio output", p.AudioOutput, ""},
		{"image input", p.ImageInput, ""},
		{"image output", p.ImageOutput, ""},
		{"each request", p.PerRequest, "a request"},
	} {
		if r.value == "" {
			continue
		}
		if r.unit == "" {
			r.unit = "a million tokens"
		}
		list = append(list, r)
	}
	return list
}

// priceLine is a price in one line.
func priceLine(p *admin.PriceView) string {
	if p.Free {
		return "free (" + p.Source + ")"
	}
	var parts []string
	for _, r := range rates(p) {
		parts = append(parts, r.name+" "+usd(r.value))
	}
	text := strings.Join(parts, ", ") + " a million tokens (" + p.Source
	if p.Date != "" {
		text += ", " + p.Date
	}
	return text + ")"
}

func writePrice(w io.Writer, e *admin.PriceEntry) error {
	head := &table{columns: make([]column, 2)}
	head.add("model", e.Model)
	head.add("provider", e.Provider)
	if e.ContextTokens > 0 {
		head.add("context", plural(e.ContextTokens, "token"))
	}
	p := e.Price
	if p == nil {
		head.add("price", "none: it is refused wherever a spend limit applies")
		return head.write(w)
	}
	head.add("source", strings.TrimSpace(p.Source+" "+p.Date))
	if p.Free {
		head.add("price", "free")
	}
	if len(e.Omitted) > 0 {
		head.add("not applied", strings.Join(e.Omitted, ", ")+" of the source")
	}
	if err := head.write(w); err != nil || p.Free {
		return err
	}
	t := &table{indent: gutter, columns: []column{{"", left}, {"", point}, {"", left}}}
	for _, r := range rates(p) {
		t.add(r.name, usd(r.value), r.unit)
	}
	for _, above := range slices.SortedFunc(maps.Keys(p.Above), byNumber) {
		for _, name := range slices.Sorted(maps.Keys(p.Above[above])) {
			t.add(strings.ReplaceAll(name, "_", " "), usd(p.Above[above][name]), "a million tokens, when the input has more than "+above)
		}
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Factor)) {
		t.add("tier "+tier, p.Factor[tier], "times these")
	}
	return t.write(w)
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

type pricesCostCmd struct {
	priced
	Input            int64  `placeholder:"N" help:"Input tokens, neither cached nor written to a cache."`
	CachedInput      int64  `placeholder:"N" help:"Input tokens read from a cache."`
	CacheWrite5m     int64  `name:"cache-write-5m" placeholder:"N" help:"Input tokens written to a cache for five minutes."`
	CacheWrite1h     int64  `name:"cache-write-1h" placeholder:"N" help:"Input tokens written to a cache for an hour."`
	AudioInput       int64  `placeholder:"N" help:"Audio input tokens."`
	CachedAudioInput int64  `placeholder:"N" help:"Audio input tokens read from a cache."`
	ImageInput       int64  `placeholder:"N" help:"Image input tokens."`
	Output           int64  `placeholder:"N" help:"Output tokens, reasoning included."`
	AudioOutput      int64  `placeholder:"N" help:"Audio output tokens."`
	ImageOutput      int64  `placeholder:"N" help:"Image output tokens."`
	Requests         int64  `default:"1" placeholder:"N" help:"Requests that it stands for."`
	Tier             string `placeholder:"NAME" help:"Service tier: flex, batch, priority."`
}

func (c *pricesCostCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.PriceCost(s.ctx, admin.PriceCostRequest{Body: admin.CostFields{
			Model: c.Model, Provider: c.Provider, Input: c.Input, CachedInput: c.CachedInput, CacheWrite5m: c.CacheWrite5m,
			CacheWrite1h: c.CacheWrite1h, AudioInput: c.AudioInput, CachedAudioInput: c.CachedAudioInput, ImageInput: c.ImageInput,
			Output: c.Output, AudioOutput: c.AudioOutput, ImageOutput: c.ImageOutput, Requests: c.Requests, ServiceTier: c.Tier,
		}})
		return show(a, answer, err, func(w io.Writer, answer *admin.PriceCostAnswer) error {
			t := &table{columns: make([]column, 2)}
			t.add("cost", usd(answer.Cost))
			t.add("price", priceLine(&answer.Price))
			return t.write(w)
		})
	})
}
