// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/money"
)

type explainCmd struct {
	ID string `arg:"" name:"request-id" help:"The X-Weir-Request-Id of the answer."`
	reach
}

func (c *explainCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.RequestShow(s.ctx, admin.RequestShowRequest{ID: c.ID})
		return show(a, answer, err, writeExplain)
	})
}

// writeExplain tells a request's story in its order: who asked for what, every
// check with what it saw, the estimate, the price, the attempts, the charge.
func writeExplain(w io.Writer, r *admin.RequestAnswer) error {
	for _, part := range []*table{explainHead(r), explainChecks(r), explainMoney(r), explainEvents(r)} {
		if len(part.rows) == 0 {
			continue
		}
		if err := part.write(w); err != nil {
			return err
		}
		if err := line(w, ""); err != nil {
			return err
		}
	}
	return line(w, explainCharge(r))
}

func explainHead(r *admin.RequestAnswer) *table {
	t := &table{columns: make([]column, 2)}
	add := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	add("request", r.ID)
	outcome := r.Outcome
	if r.Code != "" {
		outcome += ": " + r.Code
	}
	if r.Count > 1 {
		outcome += fmt.Sprintf(" (stands for %s of this kind)", count(r.Count))
	}
	add("outcome", outcome)
	add("", r.Message)
	add("at", instant(r.At))
	add("ended", instant(r.EndedAt))
	add("key", first(r.KeyName, r.Key))
	add("user", explainUser(r))
	add("team", r.Team)
	add("project", r.Project)
	add("model", explainModel(r))
	add("client's id", r.ClientID)
	return t
}

// explainUser names who was charged, and the key's own user beside another one
// that the request named (SPEC KEY-7).
func explainUser(r *admin.RequestAnswer) string {
	if r.KeyUser == "" {
		return r.User
	}
	return r.User + ", named in place of " + r.KeyUser
}

func explainModel(r *admin.RequestAnswer) string {
	text := first(r.Model, r.ModelSent)
	if r.ModelSent != "" && r.ModelSent != text {
		text += ", asked for as " + r.ModelSent
	}
	if r.Provider != "" {
		text += ", at " + r.Provider
	}
	if r.Stream {
		text += ", streamed"
	}
	return text
}

func explainChecks(r *admin.RequestAnswer) *table {
	t := &table{columns: []column{
		{"", right},
		{"check", left},
		{"of", left},
		{"window", left},
		{"amount", point},
		{"used", point},
		{"held", point},
		{"wanted", point},
		{"verdict", left},
		{"resets", left},
	}}
	for _, c := range r.Checks {
		resets := ""
		if c.Verdict != "pass" {
			resets = instant(c.ResetsAt)
		}
		t.add(strconv.Itoa(c.Place), c.Name, c.Scope, c.Window, figure(c.Metric, c.Amount), figure(c.Metric, c.Used),
			nonzero(c.Metric, c.Held), figure(c.Metric, c.Wanted), c.Verdict, resets)
	}
	return t
}

// explainMoney is the estimate, the price and the usage.
func explainMoney(r *admin.RequestAnswer) *table {
	t := &table{columns: make([]column, 2)}
	if e := r.Estimate; e != nil {
		said := []string{count(e.TextBytes) + " bytes of text", plural(e.Messages, "message")}
		if e.Tools > 0 {
			said = append(said, plural(e.Tools, "tool"))
		}
		if e.Images > 0 {
			said = append(said, plural(e.Images, "image"))
		}
		t.add("estimate", strings.Join(said, ", ")+": "+plural(e.InputTokens, "input token"))
		bound := "at most " + plural(e.OutputTokens, "output token")
		if e.Completions > 1 {
			bound += " in " + plural(e.Completions, "completion")
		}
		t.add("", bound+", "+usd(e.Worst)+" at worst")
	}
	switch {
	case r.Price != nil:
		t.add("price", priceLine(r.Price))
	case r.PriceID != "":
		t.add("price", r.PriceID+", not in force any more")
	}
	if end := r.End; end != nil {
		if end.Usage != nil {
			t.add("usage", usageLineOf(end.Usage))
		}
		if end.NamedCost != "" {
			t.add("named cost", usd(end.NamedCost)+" by the answer itself, "+usd(end.OwnCost)+" by our price")
		}
		if len(end.Marks) > 0 {
			t.add("marks", strings.Join(end.Marks, ", "))
		}
		if end.Status != 0 {
			t.add("provider", strings.TrimSpace(fmt.Sprintf("status %d %s", end.Status, answered(end.AnsweredModel))))
		}
	}
	return t
}

func answered(model string) string {
	if model == "" {
		return ""
	}
	return "as " + model
}

// usageLineOf lists the parts of a usage that are not 0.
func usageLineOf(u *admit.Usage) string {
	var parts []string
	for _, part := range []struct {
		tokens int64
		name   string
	}{
		{u.Input, "input"},
		{u.CachedInput, "cached input"},
		{u.CacheWrite, "cache write"},
		{u.AudioInput, "audio input"},
		{u.Output, "output"},
		{u.AudioOutput, "audio output"},
	} {
		if part.tokens > 0 {
			parts = append(parts, count(part.tokens)+" "+part.name)
		}
	}
	text := strings.Join(parts, " + ") + " tokens"
	if len(parts) == 0 {
		text = "no tokens"
	}
	if u.Reasoning > 0 {
		text += ", " + count(u.Reasoning) + " of the output for reasoning"
	}
	if u.ServiceTier != "" {
		text += ", tier " + u.ServiceTier
	}
	if u.Estimated {
		text += ", estimated"
	}
	return text
}

func explainEvents(r *admin.RequestAnswer) *table {
	t := &table{columns: []column{
		{"event", left}, {"attempt", right}, {"at", left}, {"model", left}, {"provider", left}, {"tokens", right}, {"spend", point}, {"by", left}, {"reason", left},
	}}
	for _, e := range r.Events {
		t.add(e.Kind, strconv.Itoa(int(e.Attempt)), instant(e.At), e.Model, e.Provider, count(e.Tokens), usd(e.Spend), e.Actor, e.Reason)
	}
	return t
}

// explainCharge is the last line: what it cost.
func explainCharge(r *admin.RequestAnswer) string {
	switch r.Outcome {
	case "refused":
		return "charged nothing: a refused request consumes nothing"
	case "running":
		return "still running"
	default:
		return "charged " + usd(first(r.Spend, "0")) + explainCorrected(r)
	}
}

// explainCorrected is what the request costs with its corrections.
func explainCorrected(r *admin.RequestAnswer) string {
	var total money.Nanos
	corrected := false
	for i := range r.Events {
		spend, err := money.ParseSignedUSD(first(r.Events[i].Spend, "0"))
		sum, ok := total.Add(spend)
		if err != nil || !ok {
			return ""
		}
		total, corrected = sum, corrected || r.Events[i].Kind == "correction"
	}
	if !corrected {
		return ""
	}
	return "; with its corrections it costs " + usd(total.String())
}
