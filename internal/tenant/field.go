// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
)

// Bounds of values where they enter (SPEC 1).
const (
	MaxRate          = 1_000_000_000_000 // rpm, tpm and concurrency
	MaxTokens        = 1_000_000_000     // of one request
	MaxUsersBound    = 1_000_000_000     // of max_users
	MaxAllowedModels = 1_000
)

// shape gives access to what keys and templates have in common.
type shape struct {
	team, project, plan *string
	allowedModels       **[]string
	maxOutputTokens     **int64
	caps                *Caps
	limits              *RuntimeLimits
	attributeUsers      *string
	requireUser         *bool
}

func (k *Key) shape() shape {
	return shape{&k.Team, &k.Project, &k.Plan, &k.AllowedModels, &k.MaxOutputTokens, &k.Caps, &k.Limits, &k.AttributeUsers, &k.RequireUser}
}

func (t *Template) shape() shape {
	return shape{&t.Team, &t.Project, &t.Plan, &t.AllowedModels, &t.MaxOutputTokens, &t.Caps, &t.Limits, &t.AttributeUsers, &t.RequireUser}
}

// fields lists the paths of what a template can hold, each with a function that
// copies it from another shape and reports whether that one has it. A list or
// number is shared, not cloned: nothing changes them in place.
func (s shape) fields() []field {
	return []field{
		{"team", func(from shape) bool { return copyText(s.team, from.team) }},
		{"project", func(from shape) bool { return copyText(s.project, from.project) }},
		{"plan", func(from shape) bool { return copyText(s.plan, from.plan) }},
		{"allowed_models", func(from shape) bool { return copySet(s.allowedModels, *from.allowedModels) }},
		{"max_output_tokens", func(from shape) bool { return copySet(s.maxOutputTokens, *from.maxOutputTokens) }},
		{"caps.day", func(from shape) bool { return copySet(&s.caps.Day, from.caps.Day) }},
		{"caps.seven_day", func(from shape) bool { return copySet(&s.caps.SevenDay, from.caps.SevenDay) }},
		{"caps.thirty_day", func(from shape) bool { return copySet(&s.caps.ThirtyDay, from.caps.ThirtyDay) }},
		{"limits.rpm", func(from shape) bool { return copySet(&s.limits.RPM, from.limits.RPM) }},
		{"limits.tpm", func(from shape) bool { return copySet(&s.limits.TPM, from.limits.TPM) }},
		{"limits.concurrency", func(from shape) bool { return copySet(&s.limits.Concurrency, from.limits.Concurrency) }},
		{"limits.count_cached", func(from shape) bool { return copySet(&s.limits.CountCached, from.limits.CountCached) }},
		{"attribute_users", func(from shape) bool { return copyText(s.attributeUsers, from.attributeUsers) }},
		{"require_user", func(from shape) bool { return copyTrue(s.requireUser, from.requireUser) }},
	}
}

type field struct {
	path string
	copy func(from shape) bool
}

func copyText(into, from *string) bool {
	if *from == "" {
		return false
	}
	*into = *from
	return true
}

func copyTrue(into, from *bool) bool {
	if !*from {
		return false
	}
	*into = true
	return true
}

func copySet[T any](into **T, from *T) bool {
	if from == nil {
		return false
	}
	*into = from
	return true
}

// read reads the fields of a shape.
func (s shape) read(r *document.Reader) {
	r.String("team", s.team)
	r.String("project", s.project)
	r.String("plan", s.plan)
	readModels(r, s.allowedModels)
	r.OptInt("max_output_tokens", s.maxOutputTokens, 0, MaxTokens)
	readCaps(r, s.caps)
	readLimits(r, "limits", s.limits)
	if n := r.Node("attribute_users"); n != nil && n.Kind == document.Null {
		*s.attributeUsers = ""
	} else {
		r.Choice("attribute_users", s.attributeUsers, AttributeHeader, AttributeBody)
	}
	r.Bool("require_user", s.requireUser)
}

// readModels reads a list of allowed models: null is all, an empty list none.
func readModels(r *document.Reader, into **[]string) {
	var models []string
	if *into != nil {
		models = **into
	}
	r.Strings("allowed_models", &models, MaxAllowedModels)
	*into = nil
	if models != nil {
		*into = &models
	}
}

func readCaps(r *document.Reader, caps *Caps) {
	if n := r.Node("caps"); n != nil && n.Kind == document.Null {
		*caps = Caps{}
		r.Give("caps.day", "caps.seven_day", "caps.thirty_day")
		return
	}
	r.Object("caps", func(r *document.Reader) {
		amount(r, "day", &caps.Day)
		amount(r, "seven_day", &caps.SevenDay)
		amount(r, "thirty_day", &caps.ThirtyDay)
	})
}

func amount(r *document.Reader, name string, into **money.Nanos) {
	r.Decimal(name, func(s string) error {
		n, err := money.ParseUSD(s)
		if err == nil {
			*into = &n
		}
		return err
	}, func() { *into = nil })
}

func readLimits(r *document.Reader, name string, limits *RuntimeLimits) {
	if n := r.Node(name); n != nil && n.Kind == document.Null {
		*limits = RuntimeLimits{}
		for _, m := range Metrics() {
			r.Give(document.Join(name, string(m)))
		}
		r.Give(document.Join(name, "count_cached"))
		return
	}
	r.Object(name, func(r *document.Reader) {
		for _, m := range Metrics() {
			r.OptInt(string(m), limits.at(m), 0, MaxRate)
		}
		readOptBool(r, "count_cached", &limits.CountCached)
	})
}

// readOptBool reads true or false; null clears it.
func readOptBool(r *document.Reader, field string, into **bool) {
	switch n := r.Node(field); {
	case n == nil:
	case n.Kind == document.Null:
		*into = nil
	default:
		value := false
		r.Bool(field, &value)
		*into = &value
	}
}

// check adds what is wrong with a shape inside workspace w, which may be nil
// when it is not known yet (SPEC CAP-2, RUN-4, KEY-5).
func (s shape) check(w *Workspace, problems *document.Problems) {
	for _, subject := range []struct{ path, name string }{{"team", *s.team}, {"project", *s.project}} {
		checkSubject(subject.path, subject.name, problems)
	}
	if *s.plan != "" {
		if err := ValidPlanName(*s.plan); err != nil {
			problems.Add("plan", "%v", err)
		}
	}
	if a := *s.attributeUsers; a != "" && a != AttributeHeader && a != AttributeBody {
		problems.Add("attribute_users", "must be %s or %s", AttributeHeader, AttributeBody)
	}
	checkModels(*s.allowedModels, *s.maxOutputTokens, problems)
	s.caps.check(problems)
	s.limits.check("limits", problems)
	if w != nil {
		s.limits.below(w, problems)
	}
}

// checkModels adds what is wrong with a list of allowed models and an output
// maximum.
func checkModels(list *[]string, maxOutputTokens *int64, problems *document.Problems) {
	if list != nil {
		if len(*list) > MaxAllowedModels {
			problems.Add("allowed_models", "has %d items, more than %d", len(*list), MaxAllowedModels)
		}
		for i, entry := range *list {
			if err := validEntry(entry); err != nil {
				problems.Add(fmt.Sprintf("allowed_models[%d]", i), "%v", err)
			}
		}
	}
	if n := maxOutputTokens; n != nil && (*n < 0 || *n > MaxTokens) {
		problems.Add("max_output_tokens", "must be from 0 to %d", int64(MaxTokens))
	}
}

func checkSubject(path, name string, problems *document.Problems) {
	if name == "" {
		return
	}
	if err := ValidSubject(name); err != nil {
		problems.Add(path, "%v", err)
	}
}

// check holds the caps to their bounds and to their order, among those that are
// set: a cap of fewer days above one of more could never be reached (SPEC
// CAP-2).
func (c *Caps) check(problems *document.Problems) {
	var shorter string
	var least money.Nanos
	for _, cap := range []struct {
		path   string
		amount *money.Nanos
	}{{"caps.day", c.Day}, {"caps.seven_day", c.SevenDay}, {"caps.thirty_day", c.ThirtyDay}} {
		if cap.amount == nil || *cap.amount == 0 {
			continue
		}
		if *cap.amount < 0 || *cap.amount > money.MaxAmount {
			problems.Add(cap.path, "must be from 0 to %s dollars", money.MaxAmount)
			continue
		}
		if *cap.amount < least {
			problems.Add(cap.path, "%s is below %s of %s: raise it, or lower %s", cap.amount, least, shorter, shorter)
			continue
		}
		shorter, least = cap.path, *cap.amount
	}
}

func (l *RuntimeLimits) check(path string, problems *document.Problems) {
	for _, m := range Metrics() {
		if n := l.Of(m); n != nil && (*n < 0 || *n > MaxRate) {
			problems.Add(document.Join(path, string(m)), "must be from 0 to %d", int64(MaxRate))
		}
	}
}

// below holds a key's positive limits to the workspace's (SPEC RUN-4).
func (l *RuntimeLimits) below(w *Workspace, problems *document.Problems) {
	for _, m := range Metrics() {
		own := l.Of(m)
		ceiling, origin := w.Layer(m)
		if positive(own) && ceiling > 0 && *own > ceiling {
			problems.Add("limits."+string(m), "%d is above the workspace's %d (%s): lower it, or raise the workspace's", *own, ceiling, origin)
		}
	}
}
