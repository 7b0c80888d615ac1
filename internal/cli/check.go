// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/config"
)

type checkCmd struct {
	File   string `arg:"" optional:"" help:"Configuration file, in place of --config."`
	Config string `short:"c" default:"weir.yaml" placeholder:"FILE" help:"Configuration file."`
}

func (c *checkCmd) Help() string {
	return `It reads the file and the environment as serve does, opens no store and reaches no
provider. Every fault is told, one line each, with file, line and field.`
}

func (c *checkCmd) Run(s *session) error {
	summary, err := app.Check(cmp.Or(c.File, c.Config), s.env)
	if err != nil {
		return s.configured(err)
	}
	text := fmt.Sprintf("%s is valid: %s, %s, %s, %s", summary.File, plural(int64(summary.Workspaces), "workspace"),
		plural(int64(summary.Providers), "provider"), plural(int64(summary.Models), "model"), plural(int64(summary.Keys), "key"))
	for _, more := range []struct {
		n    int
		noun string
	}{{summary.Plans, "plan"}, {summary.Budgets, "budget"}, {summary.RateLimits, "rate limit"}} {
		if more.n > 0 {
			text += ", " + plural(int64(more.n), more.noun)
		}
	}
	return line(s.stdout, text)
}

// configured gives errors of the configuration their exit code and, for many at
// once, their lines.
func (s *session) configured(err error) error {
	var problems config.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problems):
		tell(s.stderr, "%s\n", problems.Error())
		noun := "faults"
		if len(problems) == 1 {
			noun = "fault"
		}
		return misused("%d %s in the configuration", len(problems), noun)
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "configuration"):
		return &exit{exitUsage, err}
	default:
		return err
	}
}
