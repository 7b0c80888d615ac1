// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
)

type verifyCmd struct {
	reach

	File string `placeholder:"FILE" help:"Verify this copy of a store instead, such as a backup. No configuration is read, and nothing is changed."`
}

func (c *verifyCmd) Help() string {
	return `It reads one consistent snapshot of the store, of a running server too. Exit code 1
means that at least one figure is not what the records say. --file works on a copy in
the folder for temporary files, which needs as much room as the file.`
}

func (c *verifyCmd) Run(s *session) error {
	if c.File != "" {
		return c.file(s)
	}
	return c.with(s, func(a *asked) error {
		done := s.progress("verifying")
		answer, err := a.Verify(s.ctx, admin.VerifyRequest{})
		done()
		if err := show(a, answer, err, writeVerify); err != nil {
			return err
		}
		if !answer.Balanced {
			return &exit{code: exitFailed}
		}
		return nil
	})
}

// file verifies a copy, in this process.
func (c *verifyCmd) file(s *session) error {
	if c.Server != "" {
		return misused("--file is read here, not by a server")
	}
	done := s.progress("verifying")
	answer, err := app.VerifyFile(s.ctx, c.File)
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := writeJSON(s.stdout, answer); err != nil {
			return err
		}
	} else if err := writeVerify(s.stdout, &answer); err != nil {
		return err
	}
	if !answer.Balanced {
		return &exit{code: exitFailed}
	}
	return nil
}

func writeVerify(w io.Writer, v *admin.VerifyAnswer) error {
	c := v.Counts
	if len(v.Differences) > 0 {
		t := &table{columns: []column{
			{"workspace", left}, {"limit", left}, {"subject", left}, {"figure", left}, {"in the counter", right}, {"by the records", right}, {"request", left},
		}}
		for _, d := range v.Differences {
			t.add(d.Workspace, d.Limit, d.Subject, d.Figure, strconv.FormatInt(d.Have, 10), strconv.FormatInt(d.Want, 10), d.Request)
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	verdict := "the books balance"
	if !v.Balanced {
		verdict = plural(int64(len(v.Differences)), "difference")
	}
	text := fmt.Sprintf("%s: %s, %s, %s", verdict, plural(c.Counters, "counter"), plural(c.Events, "event"), plural(c.Reservations, "open reservation"))
	if c.Partial > 0 {
		text += fmt.Sprintf("; %s not compared: the call log begins after what is in them", plural(c.Partial, "rate counter"))
	}
	if c.Saturated > 0 {
		text += fmt.Sprintf("; %s overflowed and cannot be compared", plural(c.Saturated, "counter"))
	}
	return line(w, text)
}
