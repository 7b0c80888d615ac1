// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"

	"github.com/weirhq/weir/internal/admin"
)

type usageCmd struct {
	By   []string `default:"key,model" enum:"key,model,provider,user,team,project,day" placeholder:"GROUP" help:"Groups, by commas: key, model, provider, user, team, project, day."`
	From string   `placeholder:"DAY" help:"First day, in the workspace's zone, or an RFC 3339 instant. Without: 30 days ago."`
	To   string   `placeholder:"DAY" help:"Last day, itself included, or an RFC 3339 instant. Without: now."`
	reach
}

func (c *usageCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.Usage(s.ctx, admin.UsageRequest{By: strings.Join(c.By, ","), From: c.From, To: c.To})
		return show(a, answer, err, writeUsage)
	})
}

func writeUsage(w io.Writer, u *admin.UsageAnswer) error {
	t := &table{empty: "nothing was used"}
	for _, by := range u.By {
		t.columns = append(t.columns, column{by, left})
	}
	t.columns = append(t.columns, column{"spend", point}, column{"tokens", right}, column{"requests", right})
	for i := range u.Rows {
		t.add(usageRow(u.By, &u.Rows[i])...)
	}
	if len(u.Rows) > 1 {
		total := usageRow(u.By, &u.Total)
		for i := range u.By {
			total[i] = ""
		}
		if len(u.By) > 0 {
			total[0] = "total"
		}
		t.add(total...)
	}
	if err := t.write(w); err != nil {
		return err
	}
	return line(w, "\nfrom "+instant(u.From)+" to "+instant(u.To)+", days of "+zone(u.TimeZone))
}

func zone(name string) string {
	if name == "" {
		return "UTC"
	}
	return printable(name)
}

func usageRow(by []string, r *admin.UsageRow) []string {
	var cells []string
	for _, group := range by {
		cells = append(cells, usageGroup(r, group))
	}
	return append(cells, usd(r.Spend), count(r.Tokens), count(r.Requests))
}

// usageGroup is a row's value of one group; "-" stands for requests without.
func usageGroup(r *admin.UsageRow, group string) string {
	value := map[string]string{
		"key": r.KeyName, "model": r.Model, "provider": r.Provider, "user": r.User, "team": r.Team, "project": r.Project, "day": r.Day,
	}[group]
	switch {
	case value != "":
		return value
	case group == "key" && r.Key != "":
		return r.Key
	default:
		return "-"
	}
}
