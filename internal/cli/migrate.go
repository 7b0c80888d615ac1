// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/weirhq/weir/internal/app"
)

type migrateCmd struct {
	Config string `short:"c" default:"weir.yaml" placeholder:"FILE" help:"Configuration file: its store is migrated."`
	Status bool   `help:"Show what is pending and change nothing. Exit code 1 means that something is."`
	Days   int    `default:"3" placeholder:"N" help:"On PostgreSQL, make the tables of so many days ahead, 3 to 366."`
	JSON   bool   `name:"json" help:"Print the schema as JSON: as it is with --status, else as it was before."`
}

func (c *migrateCmd) Help() string {
	return `Servers and commands do this by themselves when they open a store, unless
postgres.migrate is manual: then the configuration given here has the role that owns
the tables, and the servers' role may lack that right. Two that migrate at once are
safe. Servers that run go on over a migration that is compatible with them; one that
is not refuses while they run.`
}

func (c *migrateCmd) Run(s *session) error {
	if c.Days < 3 || c.Days > 366 {
		return misused("--days %d: it is 3 to 366", c.Days)
	}
	o := app.Options{ConfigPath: c.Config, Env: s.env, Stdout: s.stdout, Stderr: s.stderr}
	if c.Status {
		schema, err := app.ReadSchema(s.ctx, o)
		if err != nil {
			return s.configured(err)
		}
		if err := c.show(s.stdout, schema, writeSchema); err != nil {
			return err
		}
		if len(schema.Pending) > 0 {
			return &exit{code: exitFailed}
		}
		return nil
	}
	schema, err := app.Migrate(s.ctx, o, c.Days, func(m app.Migration) { tell(s.stderr, "migration %d, %s\n", m.Version, m.Name) })
	if err != nil {
		return s.configured(err)
	}
	return c.show(s.stdout, schema, writeMigrated)
}

func (c *migrateCmd) show(w io.Writer, schema *app.Schema, people func(io.Writer, *app.Schema) error) error {
	if c.JSON {
		return writeJSON(w, schema)
	}
	return people(w, schema)
}

// writeJSON prints what no server has answered.
func writeJSON(w io.Writer, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return line(w, string(text))
}

func writeSchema(w io.Writer, s *app.Schema) error {
	text := fmt.Sprintf("%s: schema %d, this program knows %d", s.Store, s.Have, s.Want)
	if s.Have > 0 {
		text += fmt.Sprintf("; programs that know %d and later can use it", s.Compatible)
	}
	if err := line(w, text); err != nil || len(s.Pending) == 0 {
		return err
	}
	t := &table{columns: []column{{"pending", right}, {"name", left}, {"compatible since", right}}}
	for _, m := range s.Pending {
		t.add(strconv.FormatInt(m.Version, 10), m.Name, strconv.FormatInt(m.CompatibleSince, 10))
	}
	if err := t.write(w); err != nil {
		return err
	}
	for _, o := range s.Older {
		if err := line(w, fmt.Sprintf("runs and would be left behind: %s (%s, %s)", printable(o.ID), printable(o.Name), printable(o.Version))); err != nil {
			return err
		}
	}
	return nil
}

func writeMigrated(w io.Writer, before *app.Schema) error {
	if len(before.Pending) == 0 {
		return line(w, fmt.Sprintf("%s: schema %d, nothing to do", before.Store, before.Have))
	}
	return line(w, fmt.Sprintf("%s: schema %d, was %d", before.Store, before.Want, before.Have))
}
