// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/window"
)

// usageDays is how far back a report goes when nothing is said.
const usageDays = 30

// groups are what usage can be summed up by.
var groups = []store.By{store.ByKey, store.ByModel, store.ByProvider, store.ByUser, store.ByTeam, store.ByProject, store.ByDay}

// Usage sums up what the workspace's requests used. Days are those of the
// workspace's zone, and a charge belongs to the day of its request's admission.
func (s *Service) Usage(ctx context.Context, a Actor, r UsageRequest) (UsageAnswer, error) {
	c, err := s.enter(ctx, a, OpUsage)
	if err != nil {
		return UsageAnswer{}, err
	}
	q := store.UsageQuery{Workspace: c.object.ID, Zone: c.zone}
	if q.By, err = readGroups(r.By); err != nil {
		return UsageAnswer{}, err
	}
	if q.From, q.To, err = c.readSpan(r.From, r.To); err != nil {
		return UsageAnswer{}, err
	}
	rows, err := s.Log.Usage(ctx, q)
	if err != nil {
		return UsageAnswer{}, answer(err)
	}
	total, err := s.Log.Usage(ctx, store.UsageQuery{Workspace: q.Workspace, From: q.From, To: q.To})
	if err != nil {
		return UsageAnswer{}, answer(err)
	}
	out := UsageAnswer{
		From: local(q.From, c.zone), To: local(q.To, c.zone), TimeZone: c.zone.String(), By: []string{}, Rows: []UsageRow{},
		Total: UsageRow{Spend: "0"},
	}
	for _, by := range q.By {
		out.By = append(out.By, string(by))
	}
	names := s.namer(ctx, c)
	for i := range rows {
		out.Rows = append(out.Rows, viewUsage(&rows[i], names))
	}
	if len(total) > 0 {
		out.Total = viewUsage(&total[0], names)
	}
	return out, nil
}

func readGroups(text string) ([]store.By, error) {
	var list []store.By
	for word := range strings.SplitSeq(text, ",") {
		by := store.By(strings.TrimSpace(word))
		switch {
		case by == "" && strings.TrimSpace(text) == "":
		case !slices.Contains(groups, by):
			return nil, refuse("by", "has %s, which is none of key, model, provider, user, team, project, day", document.Quote(string(by)))
		case slices.Contains(list, by):
			return nil, refuse("by", "has %s twice", by)
		default:
			list = append(list, by)
		}
	}
	return list, nil
}

// readSpan reads the first instant of a report and the one after its last.
func (c *scope) readSpan(from, to string) (first, end int64, err error) {
	today := window.DayAt(c.at, c.zone)
	first, end = (today - usageDays + 1).Start(c.zone), (today + 1).Start(c.zone)
	if to != "" {
		if end, err = c.readInstant("to", to, 1); err != nil {
			return 0, 0, err
		}
		first = (window.DayAt(end-1, c.zone) - usageDays + 1).Start(c.zone)
	}
	if from != "" {
		if first, err = c.readInstant("from", from, 0); err != nil {
			return 0, 0, err
		}
	}
	if first >= end {
		return 0, 0, refuse("from", "is not before to")
	}
	return first, end, nil
}

// readInstant reads a local date, of which it takes the start of the day that
// lies later days after, or an instant.
func (c *scope) readInstant(field, text string, later window.Day) (int64, error) {
	if date, err := time.Parse(time.DateOnly, text); err == nil {
		return (window.DayAt(date.UnixMicro(), time.UTC) + later).Start(c.zone), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, refuse(field, "must be a date such as 2006-01-02, or an instant such as 2006-01-02T15:04:05Z")
	}
	return at.UnixMicro(), nil
}

// namer finds the names of keys by their ids, each once.
func (s *Service) namer(ctx context.Context, c *scope) func(id string) string {
	known := map[string]string{}
	return func(id string) string {
		if id == "" {
			return ""
		}
		name, ok := known[id]
		if !ok {
			// A name is a help to the reader: without it the id still tells.
			object, err := s.Objects.Object(ctx, c.object.ID, KindKey, id)
			if err == nil {
				name = object.Name
			}
			known[id] = name
		}
		return name
	}
}

func viewUsage(r *store.UsageRow, name func(string) string) UsageRow {
	return UsageRow{
		Key: r.Group[store.ByKey], KeyName: name(r.Group[store.ByKey]), Model: r.Group[store.ByModel],
		Provider: r.Group[store.ByProvider], User: r.Group[store.ByUser], Team: r.Group[store.ByTeam],
		Project: r.Group[store.ByProject], Day: r.Group[store.ByDay],
		Spend: usd(r.Spend), Tokens: r.Tokens, Requests: r.Requests,
	}
}
