// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
)

// maxListBytes bounds the file of a price list.
const maxListBytes = 32 << 20

type pricesImportCmd struct {
	File    string `arg:"" help:"The list's JSON file."`
	Format  string `enum:"litellm,models.dev,genai-prices," default:"" placeholder:"NAME" help:"litellm, models.dev or genai-prices; left out, the list's shape tells."`
	Date    string `placeholder:"DAY" help:"The list's day, as 2006-01-02; today when left out."`
	DryRun  bool   `help:"Show what would change, and change nothing."`
	Confirm bool   `help:"Take prices above 10,000 dollars."`
	Notes   bool   `help:"Show every model that was skipped or taken otherwise than listed."`
	reach
}

func (c *pricesImportCmd) Run(s *session) error {
	text, err := c.read()
	if err != nil {
		return err
	}
	return c.with(s, func(a *asked) error {
		answer, err := a.PriceImport(s.ctx, admin.PriceImportRequest{
			Format: c.Format, Date: c.Date, DryRun: c.DryRun, Confirm: c.Confirm, Body: text,
		})
		return show(a, answer, err, c.write)
	})
}

func (c *pricesImportCmd) read() ([]byte, error) {
	file, err := os.Open(c.File)
	if err != nil {
		return nil, misused("%v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxListBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the price list: %w", err)
	case len(text) > maxListBytes:
		return nil, misused("%s is larger than %d bytes", c.File, maxListBytes)
	}
	return text, nil
}

// shownChanges bounds the changes that are listed without --json, those of what
// is in use first.
const shownChanges = 40

func (c *pricesImportCmd) write(w io.Writer, answer *admin.PriceImportAnswer) error {
	head := &table{columns: make([]column, 2)}
	head.add("list", answer.Format+", "+answer.Date+": "+plural(int64(answer.Listed), "price"))
	for _, n := range []struct {
		name  string
		count int
	}{
		{"added", len(answer.Added)},
		{"changed", len(answer.Changed)},
		{"removed", len(answer.Removed)},
		{"unchanged", answer.Unchanged},
		{"stale", len(answer.Stale)},
		{"skipped", len(answer.Skipped)},
		{"without a price", answer.Unpriced},
	} {
		head.add(n.name, count(int64(n.count)))
	}
	if err := head.write(w); err != nil {
		return err
	}
	if err := writeChanges(w, answer); err != nil {
		return err
	}
	if err := c.writeNotes(w, answer); err != nil {
		return err
	}
	if answer.DryRun {
		return line(w, "\nnothing was changed (--dry-run)")
	}
	return nil
}

func writeChanges(w io.Writer, answer *admin.PriceImportAnswer) error {
	t := &table{columns: []column{{"", left}, {"model", left}, {"provider", left}, {"what", left}}}
	rest := 0
	add := func(word string, c admin.PriceChange, what string) {
		if len(t.rows) == shownChanges {
			rest++
			return
		}
		t.add(word, c.Model, c.Provider, what)
	}
	for _, c := range answer.Stale {
		add("stale", c, "in use and not in the list any more: kept")
	}
	for _, inUse := range []bool{true, false} {
		for _, c := range answer.Changed {
			if c.InUse == inUse {
				add("changed", c, differences(c))
			}
		}
		for _, c := range answer.Added {
			if c.InUse && inUse {
				add("added", c, "in use")
			}
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	if err := line(w, ""); err != nil {
		return err
	}
	if err := t.write(w); err != nil || rest == 0 {
		return err
	}
	return line(w, "and "+plural(int64(rest), "more change")+": --json lists all")
}

// differences are the prices that changed, as "input 2.5 -> 3".
func differences(c admin.PriceChange) string {
	var parts []string
	for i := range max(len(c.Before), len(c.After)) {
		var before, after map[string]string
		if i < len(c.Before) {
			before = c.Before[i]
		}
		if i < len(c.After) {
			after = c.After[i]
		}
		keys := maps.Clone(before)
		if keys == nil {
			keys = map[string]string{}
		}
		maps.Copy(keys, after)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if before[key] != after[key] {
				parts = append(parts, key+" "+orNone(before[key])+" -> "+orNone(after[key]))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func (c *pricesImportCmd) writeNotes(w io.Writer, answer *admin.PriceImportAnswer) error {
	all := append(slices.Clone(answer.Skipped), answer.Notes...)
	if len(all) == 0 {
		return nil
	}
	if !c.Notes {
		return line(w, "\n"+strconv.Itoa(len(answer.Skipped))+" skipped, "+strconv.Itoa(len(answer.Notes))+" taken otherwise than listed: --notes shows them")
	}
	t := &table{columns: []column{{"", left}, {"model", left}, {"provider", left}, {"field", left}, {"why", left}}}
	for i, n := range all {
		word := "skipped"
		if i >= len(answer.Skipped) {
			word = "taken"
		}
		t.add(word, n.Model, n.Provider, n.Field, n.Text)
	}
	if err := line(w, ""); err != nil {
		return err
	}
	return t.write(w)
}
