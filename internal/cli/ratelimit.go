// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type rateLimitCmd struct {
	List   rateLimitListCmd   `cmd:"" help:"List every rate limit with its use."`
	Create rateLimitCreateCmd `cmd:"" help:"Make a rate limit."`
	Update rateLimitUpdateCmd `cmd:"" help:"Change a rate limit: only what is given changes."`
	Delete rateLimitDeleteCmd `cmd:"" help:"Delete a rate limit."`
	Reset  rateLimitResetCmd  `cmd:"" help:"Empty a rate limit's window."`
}

// rateLimitFlags are what can be said of a rate limit.
type rateLimitFlags struct {
	SubjectKind   *string `placeholder:"KIND" help:"Whose rate it bounds: user, api_key, project, team, org or tag."`
	SubjectID     *string `name:"subject-id" xor:"subject" placeholder:"NAME" help:"Which one: a name, a key's name or id, a tag. Without: each separately."`
	Model         *string `placeholder:"MODEL" help:"Count what is sent to this model only; an empty text: all."`
	Metric        *string `placeholder:"METRIC" help:"requests or tokens."`
	WindowSeconds *int64  `placeholder:"N" help:"Length of the sliding window, 1 to 86400."`
	Limit         *int64  `placeholder:"N" help:"How many in any window of that length."`
	Enabled       *bool   `negatable:"" help:"It counts and refuses, the default; --no-enabled switches it off."`
	Estimate      *string `placeholder:"WORD" help:"What tokens are asked for: full, or input alone."`
	CountCached   *bool   `negatable:"" help:"Count cache reads as tokens, the default; --no-count-cached leaves them out."`
}

func (f *rateLimitFlags) fields() admin.RateLimitFields {
	return admin.RateLimitFields{
		SubjectKind: given(f.SubjectKind), SubjectID: given(f.SubjectID), Model: given(f.Model), Metric: given(f.Metric),
		WindowSeconds: given(f.WindowSeconds), Limit: given(f.Limit), Enabled: given(f.Enabled), Estimate: given(f.Estimate),
		CountCached: given(f.CountCached),
	}
}

type rateLimitListCmd struct {
	page
	reach
}

func (c *rateLimitListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.RateLimitList(s.ctx, admin.RateLimitListRequest{Cursor: c.Cursor, Limit: c.Limit})
		return show(a, answer, err, writeRateLimits)
	})
}

type rateLimitCreateCmd struct {
	Name string `arg:"" help:"Name, one of its kind in the workspace."`
	rateLimitFlags
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, nothing more is made."`
	reach
}

func (c *rateLimitCreateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = admin.Some(c.Name)
		answer, err := a.RateLimitCreate(s.ctx, admin.RateLimitCreateRequest{IdempotencyKey: c.IdempotencyKey, Body: body})
		return show(a, answer, err, writeRateLimit)
	})
}

// rateLimitName is the argument of commands about one rate limit.
type rateLimitName struct {
	RateLimit string `arg:"" help:"Its name or id."`
	reach
}

type rateLimitUpdateCmd struct {
	rateLimitName
	Name *string `placeholder:"NAME" help:"New name."`
	rateLimitFlags
	Each bool `xor:"subject" help:"Each subject separately."`
}

func (c *rateLimitUpdateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = given(c.Name)
		if c.Each {
			body.SubjectID = admin.Null[string]()
		}
		answer, err := a.RateLimitUpdate(s.ctx, admin.RateLimitUpdateRequest{ID: c.RateLimit, Body: body})
		return show(a, answer, err, writeRateLimit)
	})
}

type rateLimitDeleteCmd struct{ rateLimitName }

func (c *rateLimitDeleteCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.RateLimitDelete(s.ctx, admin.RateLimitRequest{ID: c.RateLimit})
		return show(a, answer, err, writeRateLimit)
	})
}

type rateLimitResetCmd struct {
	rateLimitName
	Subject *string `placeholder:"NAME" help:"Whose, of a rate limit that each subject has for itself."`
	reasonFlags
}

func (c *rateLimitResetCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.RateLimitReset(s.ctx, admin.RateLimitResetRequest{ID: c.RateLimit, IdempotencyKey: c.IdempotencyKey, Body: admin.ResetFields{
			Subject: given(c.Subject), Reason: c.Reason,
		}})
		return show(a, answer, err, writeRateLimit)
	})
}

func writeRateLimit(w io.Writer, r *admin.RateLimitAnswer) error {
	return writeRateLimits(w, &admin.RateLimitListAnswer{RateLimits: []admin.RateLimitAnswer{*r}})
}

func writeRateLimits(w io.Writer, answer *admin.RateLimitListAnswer) error {
	t := &table{empty: "no rate limits", columns: []column{
		{"name", left},
		{"of", left},
		{"on", left},
		{"metric", left},
		{"seconds", right},
		{"limit", right},
		{"used", right},
		{"left", right},
		{"less at", left},
		{"state", left},
		{"id", left},
		{"from", left},
	}}
	note := ""
	for i := range answer.RateLimits {
		r := &answer.RateLimits[i]
		state := "on"
		if !r.Enabled {
			state = "off"
		}
		note = first(note, r.Note)
		t.add(r.Name, limitOf(r.SubjectKind, first(r.SubjectName, r.SubjectID), r.Per, ""), r.Model, r.Metric, count(r.WindowSeconds),
			count(r.Limit), counted(r.Used), counted(r.Remaining), instant(r.ResetsAt), state, r.ID, first(r.Origin, r.Source))
	}
	if err := t.writeThen(w, answer.NextCursor); err != nil || note == "" {
		return err
	}
	return line(w, "\n"+printable(note))
}

func counted(n *int64) string {
	if n == nil {
		return ""
	}
	return count(*n)
}
