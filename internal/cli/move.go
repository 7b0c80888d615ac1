// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/app"
)

type moveCmd struct {
	Config      string `short:"c" default:"weir.yaml" placeholder:"FILE" help:"Configuration file of the store that is moved: an embedded one."`
	Undo        bool   `help:"Let the embedded store be opened again. What the database has counted since is not in it."`
	AcceptClock bool   `help:"Move although the clock is more than an hour behind the store's last instant."`
	JSON        bool   `name:"json" help:"Print what was moved as JSON."`

	To string `arg:"" optional:"" placeholder:"FILE" help:"Configuration file whose store is the PostgreSQL database to move to: an empty one."`
}

func (c *moveCmd) Help() string {
	return `Stop the server first. Everything is copied in one transaction: keys and their
secrets, funds, counters, records, audit. Then both stores are compared row by row
and the copy's books are verified; until that is done no server starts on the
database. Afterwards none starts on the old store, which is left as it is. What is
cut short is repeated with the same command.`
}

func (c *moveCmd) Run(s *session) error {
	o := app.Options{ConfigPath: c.Config, Env: s.env, Stdout: s.stdout, Stderr: s.stderr, AcceptClock: c.AcceptClock}
	switch {
	case c.Undo && c.To != "":
		return misused("--undo takes no other configuration")
	case c.Undo:
		name, err := app.Unmove(s.ctx, o)
		if err != nil {
			return s.configured(err)
		}
		return line(s.stdout, name+" can be opened again")
	case c.To == "":
		return misused("the configuration file of the database is missing")
	}
	told, done := s.progressing()
	moved, err := app.Move(s.ctx, o, c.To, func(m app.Moving) {
		text := strings.TrimSpace(m.Step + " " + m.Name)
		if m.Rows > 0 {
			text += ", " + thousands(strconv.FormatInt(m.Rows, 10)) + " rows"
		}
		told(text)
	})
	done()
	if err != nil {
		return s.configured(err)
	}
	if c.JSON {
		return writeJSON(s.stdout, moved)
	}
	t := &table{columns: []column{{"moved", left}, {"rows", right}}}
	for _, r := range moved.Rows {
		t.add(r.Name, thousands(strconv.FormatInt(r.Rows, 10)))
	}
	if err := t.write(s.stdout); err != nil {
		return err
	}
	return line(s.stdout, fmt.Sprintf("\n%s is now %s: every row is the same, and the books balance", moved.From, moved.To))
}
