// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/admin"
)

type pricesCmd struct {
	List    pricesListCmd    `cmd:"" help:"List prices: the workspace's models, then what was imported, then the built-in catalogue."`
	Show    pricesShowCmd    `cmd:"" help:"Show one model's price in full: its source, its date, and whether it is stale."`
	Preview pricesPreviewCmd `cmd:"" help:"Say what a request of so many tokens costs."`
	Cost    pricesCostCmd    `cmd:"" help:"Say what any usage costs, exactly as it would be charged, part by part."`
	Import  pricesImportCmd  `cmd:"" help:"Import a published price list: LiteLLM's, models.dev's or genai-prices'."`
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
			t.add(e.Model, e.Provider, "free", "", "", context, priceSource(p))
		default:
			t.add(e.Model, e.Provider, usd(p.Input), usd(p.CachedInput), usd(p.Output), context, priceSource(p))
		}
	}
	if err := t.writeThen(w, answer.NextCursor); err != nil {
		return err
	}
	return line(w, "\nUS dollars per million tokens; built-in: "+printable(answer.Catalogue)+", "+printable(answer.Date))
}

// priceSource is where a row comes from, and of which day it is.
func priceSource(p *admin.PriceView) string {
	parts := []string{p.Source}
	if p.List != "" {
		parts = append(parts, p.List)
	}
	if p.Source == "imported" {
		parts = append(parts, p.Date)
	}
	if p.ValidFromMicros != 0 {
		parts = append(parts, "from "+day(p.ValidFromMicros))
	}
	if p.StaleSince != "" {
		parts = append(parts, "stale since "+p.StaleSince)
	}
	return strings.Join(parts, ", ")
}

func day(micros int64) string { return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04") }

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

// perMillion is what a price of tokens is for.
const perMillion = "a million tokens"

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
		{"each second heard", p.PerSecondInput, "a second"},
		{"each second spoken", p.PerSecondOutput, "a second"},
		{"each image", p.PerImage, "an image"},
	} {
		if r.value == "" {
			continue
		}
		if r.unit == "" {
			r.unit = perMillion
		}
		list = append(list, r)
	}
	for _, tool := range slices.Sorted(maps.Keys(p.PerToolCall)) {
		list = append(list, rate{tool, p.PerToolCall[tool], "a call"})
	}
	return list
}

// priceLine is a price in one line.
func priceLine(p *admin.PriceView) string {
	if p.Free {
		return "free (" + p.Source + ")"
	}
	var tokens, ones []string
	for _, r := range rates(p) {
		if r.unit == perMillion {
			tokens = append(tokens, r.name+" "+usd(r.value))
		} else {
			ones = append(ones, r.name+" "+usd(r.value))
		}
	}
	text := strings.Join(tokens, ", ")
	if text != "" {
		text += " " + perMillion
	}
	text = strings.TrimPrefix(strings.Join(append([]string{text}, ones...), ", "), ", ") + " (" + p.Source
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
	source := p.Source
	if p.List != "" {
		source += " from " + p.List
	}
	head.add("source", strings.TrimSpace(source+" "+p.Date))
	if p.StaleSince != "" {
		head.add("stale", "since "+p.StaleSince+": the list has it no more; it stays in force because it is in use")
	}
	if p.ValidFromMicros != 0 {
		head.add("in force", "from "+day(p.ValidFromMicros)+" UTC")
	}
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
	addAbove(t, p.Above, "")
	for _, tier := range slices.Sorted(maps.Keys(p.ServiceTier)) {
		s, unit := p.ServiceTier[tier], ", in the service tier "+tier
		for _, r := range rates(&admin.PriceView{TokenPrices: s}) {
			t.add(r.name, usd(r.value), r.unit+unit)
		}
		addAbove(t, s.Above, unit)
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Factor)) {
		t.add("tier "+tier, p.Factor[tier], "times these")
	}
	return t.write(w)
}

// addAbove adds the prices of long inputs.
func addAbove(t *table, prices map[string]map[string]string, where string) {
	for _, above := range slices.SortedFunc(maps.Keys(prices), byNumber) {
		for _, name := range slices.Sorted(maps.Keys(prices[above])) {
			t.add(strings.ReplaceAll(name, "_", " "), usd(prices[above][name]), perMillion+where+", when the input has more than "+above)
		}
	}
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
