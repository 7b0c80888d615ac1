// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/weirhq/weir/internal/admin"
)

type limitsCmd struct{ keyName }

func (c *limitsCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyLimits(s.ctx, admin.KeyRequest{Key: c.Key})
		return show(a, answer, err, writeLimits)
	})
}

// writeLimits lists a key's limits in the order in which they are checked.
func writeLimits(w io.Writer, k *admin.KeyLimitsAnswer) error {
	t := &table{empty: "no limit applies to this key", columns: []column{
		{"limit", left},
		{"of", left},
		{"on", left},
		{"window", left},
		{"amount", point},
		{"used", point},
		{"held", point},
		{"left", point},
		{"resets", left},
		{"from", left},
	}}
	for _, l := range k.Limits {
		t.add(l.Name, l.Scope, first(l.Model, l.Provider), l.Window, figure(l.Metric, l.Amount), figure(l.Metric, l.Used), nonzero(l.Metric, l.Held),
			figure(l.Metric, l.Remaining), instant(l.ResetsAt), l.Origin)
	}
	return t.write(w)
}

// nonzero leaves a figure out that is 0.
func nonzero(metric, value string) string {
	if value == "0" {
		return ""
	}
	return figure(metric, value)
}
