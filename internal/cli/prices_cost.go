// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type pricesPreviewCmd struct {
	priced
	Input  int64  `default:"1000" placeholder:"N" help:"Input tokens in all."`
	Cached int64  `placeholder:"N" help:"How many of them are read from a cache."`
	Output int64  `default:"1000" placeholder:"N" help:"Output tokens, reasoning included."`
	Tier   string `placeholder:"NAME" help:"Service tier: flex, batch, priority."`
}

func (c *pricesPreviewCmd) Run(s *session) error {
	if c.Cached > c.Input {
		return misused("--cached %d is more than --input %d", c.Cached, c.Input)
	}
	return c.cost(s, admin.CostFields{
		Input: c.Input - c.Cached, CachedInput: c.Cached, Output: c.Output, Requests: 1, ServiceTier: c.Tier,
	})
}

type pricesCostCmd struct {
	priced
	Input              int64            `placeholder:"N" help:"Input tokens, neither cached nor written to a cache."`
	CachedInput        int64            `placeholder:"N" help:"Input tokens read from a cache."`
	CacheWrite5m       int64            `name:"cache-write-5m" placeholder:"N" help:"Input tokens written to a cache for five minutes."`
	CacheWrite1h       int64            `name:"cache-write-1h" placeholder:"N" help:"Input tokens written to a cache for an hour."`
	ToolInput          int64            `placeholder:"N" help:"Input tokens that the provider's own tools read."`
	AudioInput         int64            `placeholder:"N" help:"Audio input tokens."`
	CachedAudioInput   int64            `placeholder:"N" help:"Audio input tokens read from a cache."`
	ImageInput         int64            `placeholder:"N" help:"Image input tokens."`
	Output             int64            `placeholder:"N" help:"Output tokens, reasoning included."`
	AudioOutput        int64            `placeholder:"N" help:"Audio output tokens."`
	ImageOutput        int64            `placeholder:"N" help:"Image output tokens."`
	AudioInputSeconds  string           `placeholder:"N" help:"Seconds of audio heard, in decimal."`
	AudioOutputSeconds string           `placeholder:"N" help:"Seconds of audio spoken, in decimal."`
	Images             int64            `placeholder:"N" help:"Images made."`
	ToolCalls          map[string]int64 `placeholder:"NAME=N" help:"Calls of the provider's own tools: web_search=3."`
	Requests           int64            `default:"1" placeholder:"N" help:"Requests that it stands for."`
	Tier               string           `placeholder:"NAME" help:"Service tier: flex, batch, priority."`
}

func (c *pricesCostCmd) Run(s *session) error {
	return c.cost(s, admin.CostFields{
		Input: c.Input, CachedInput: c.CachedInput, CacheWrite5m: c.CacheWrite5m, CacheWrite1h: c.CacheWrite1h,
		ToolInput: c.ToolInput, AudioInput: c.AudioInput, CachedAudioInput: c.CachedAudioInput, ImageInput: c.ImageInput,
		Output: c.Output, AudioOutput: c.AudioOutput, ImageOutput: c.ImageOutput,
		AudioInputSeconds: c.AudioInputSeconds, AudioOutputSeconds: c.AudioOutputSeconds, Images: c.Images,
		ToolCalls: c.ToolCalls, Requests: c.Requests, ServiceTier: c.Tier,
	})
}

// cost asks what a usage of the model costs, and shows it.
func (c *priced) cost(s *session, usage admin.CostFields) error {
	usage.Model, usage.Provider = c.Model, c.Provider
	return c.with(s, func(a *asked) error {
		answer, err := a.PriceCost(s.ctx, admin.PriceCostRequest{Body: usage})
		return show(a, answer, err, writeCost)
	})
}

func writeCost(w io.Writer, answer *admin.PriceCostAnswer) error {
	t := &table{columns: []column{{"part", left}, {"units", point}, {"rate", point}, {"for", left}, {"amount", point}}}
	for _, l := range answer.Lines {
		t.add(l.Part, l.Units, usd(l.Rate), l.Per, usd(l.Amount))
	}
	if len(answer.Lines) > 0 {
		if err := t.write(w); err != nil {
			return err
		}
		if err := line(w, ""); err != nil {
			return err
		}
	}
	head := &table{columns: make([]column, 2)}
	if answer.AboveTokens > 0 {
		head.add("context", "the prices above "+count(answer.AboveTokens)+" input tokens")
	}
	switch {
	case answer.TierUnpriced:
		head.add("tier", answer.ServiceTier+": the price says nothing of it, so it costs what the standard tier does")
	case answer.ServiceTier != "" && answer.Factor == "":
		head.add("tier", answer.ServiceTier+": at its own prices")
	case answer.ServiceTier != "":
		head.add("tier", answer.ServiceTier+": times "+answer.Factor+", but for requests and calls")
	}
	if answer.Exact != "" {
		head.add("exact", "$"+answer.Exact)
	}
	head.add("cost", usd(answer.Cost))
	head.add("price", priceLine(&answer.Price))
	return head.write(w)
}
