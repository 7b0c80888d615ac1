// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/price"
	pricelist "github.com/weirhq/weir/internal/price/feed"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

// PriceImport makes the imported prices what a published list says (SPEC PRC-2).
// They are shared by every workspace that inherits. What the list has no more is
// removed, but for what is in use, which is kept and marked stale; rows that came
// from other lists stay.
func (s *Service) PriceImport(ctx context.Context, a Actor, r PriceImportRequest) (PriceImportAnswer, error) {
	c, err := s.enter(ctx, a, OpPriceImport)
	if err != nil {
		return PriceImportAnswer{}, err
	}
	if r.Date == "" {
		r.Date = time.UnixMicro(c.at).UTC().Format(time.DateOnly)
	}
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
		return PriceImportAnswer{}, refuse("date", "is no date like 2006-01-02")
	}
	list, err := pricelist.Read(r.Body, pricelist.Options{Format: r.Format, Date: r.Date, Confirm: r.Confirm})
	var problems document.Problems
	switch {
	case errors.As(err, &problems):
		return PriceImportAnswer{}, invalid(err)
	case err != nil:
		return PriceImportAnswer{}, refuse("", "%v", err)
	}
	return repeat(func() (PriceImportAnswer, error) { return s.importOnce(ctx, c, r, list) })
}

func (s *Service) importOnce(ctx context.Context, c *scope, r PriceImportRequest, list *pricelist.List) (PriceImportAnswer, error) {
	used, err := s.pricesInUse(ctx)
	if err != nil {
		return PriceImportAnswer{}, err
	}
	i := &importer{
		list: list, date: r.Date, used: used,
		out: PriceImportAnswer{
			Format: list.Format, Date: r.Date, DryRun: r.DryRun, Listed: list.Count(), Unpriced: list.Unpriced,
			Added: []PriceChange{}, Changed: []PriceChange{}, Removed: []PriceChange{}, Stale: []PriceChange{},
			Skipped: viewNotes(list.Skipped), Notes: viewNotes(list.Notes),
		},
	}
	edits, err := s.planImport(ctx, c, i)
	if err != nil || r.DryRun || len(edits) == 0 {
		return i.out, err
	}
	return i.out, s.change(ctx, c.at, edits)
}

func viewNotes(notes []pricelist.Note) []PriceNote {
	list := make([]PriceNote, 0, len(notes))
	for _, n := range notes {
		list = append(list, PriceNote(n))
	}
	return list
}

// planImport is one edit for each provider whose rows differ.
func (s *Service) planImport(ctx context.Context, c *scope, i *importer) ([]store.Edit, error) {
	now := map[string]*price.Import{}
	if err := s.each(ctx, "", price.KindImport, func(o store.Object) error {
		rows, err := price.DecodeImport(o.Body)
		if err == nil {
			now[rows.Provider] = rows
		}
		return err
	}); err != nil {
		return nil, err
	}
	var edits []store.Edit
	for _, provider := range slices.Compact(slices.Sorted(maps.Keys(union(now, i.list.Rows)))) {
		next, before, after, err := i.provider(provider, now[provider])
		if err != nil {
			return nil, err
		}
		edit, changed, err := s.importEdit(ctx, c, next, before, after)
		if err != nil {
			return nil, err
		}
		if changed {
			edits = append(edits, edit)
		}
	}
	return edits, nil
}

func union[A, B any](a map[string]A, b map[string]B) map[string]bool {
	all := make(map[string]bool)
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return all
}

// importEdit writes one provider's rows. Its audit has those that changed alone.
func (s *Service) importEdit(ctx context.Context, c *scope, next *price.Import, before, after changed) (store.Edit, bool, error) {
	object, err := s.Objects.Object(ctx, "", price.KindImport, next.Provider)
	if errors.Is(err, store.ErrNotFound) {
		object, err = store.Object{}, nil
	}
	if err != nil {
		return store.Edit{}, false, err
	}
	body, err := next.Encode()
	if err != nil {
		return store.Edit{}, false, err
	}
	gone := len(next.Models) == 0
	live := object.Version > 0 && object.RetiredAt == 0
	if gone && !live || live && !gone && bytes.Equal(body, object.Body) {
		return store.Edit{}, false, nil
	}
	edit := store.Edit{Expect: object.Version, Retire: gone, Object: store.Object{
		Kind: price.KindImport, ID: next.Provider, Name: next.Provider, Body: body, Source: SourceAPI,
	}}
	edit.Audit = c.audit(&edit.Object, before.text(), after.text())
	return edit, true, nil
}

// changed are prices by model, for the audit.
type changed map[string][]map[string]string

func (c changed) text() []byte {
	if len(c) == 0 {
		return nil
	}
	text, _ := json.Marshal(c) // strings alone cannot fail
	return text
}

// importer plans one import.
type importer struct {
	list *pricelist.List
	date string
	used map[[2]string]bool
	out  PriceImportAnswer
}

// provider works out what becomes of one provider's rows, nil for none yet.
func (i *importer) provider(name string, now *price.Import) (next *price.Import, before, after changed, err error) {
	if now == nil {
		now = &price.Import{Provider: name, Models: map[string]price.Schedule{}}
	}
	listed, err := price.NewImport(name, i.list.Rows[name])
	if err != nil {
		return nil, nil, nil, fmt.Errorf("import: %w", err)
	}
	next = &price.Import{Provider: name, Models: maps.Clone(now.Models)}
	before, after = changed{}, changed{}
	for _, model := range slices.Sorted(maps.Keys(union(now.Models, listed.Models))) {
		was, is := now.Models[model], listed.Models[model]
		change := PriceChange{Provider: name, Model: model, InUse: i.used[[2]string{name, model}], Before: fields(was), After: fields(is)}
		switch {
		case is != nil && was == nil:
			i.out.Added = append(i.out.Added, change)
		case is != nil && same(was, is):
			i.out.Unchanged++
		case is != nil:
			i.out.Changed = append(i.out.Changed, change)
		case was[0].List != i.list.Format:
			i.out.Unchanged++
			continue
		case change.InUse:
			change.After = nil
			i.out.Stale = append(i.out.Stale, change)
			next.Models[model] = stale(was, i.date)
			continue
		default:
			i.out.Removed = append(i.out.Removed, change)
			delete(next.Models, model)
			before[model] = change.Before
			continue
		}
		next.Models[model] = is
		if !same(was, is) {
			before[model], after[model] = change.Before, change.After
			if was == nil {
				delete(before, model)
			}
		}
	}
	return next, before, after, nil
}

// stale marks rows that their list has no more; a mark that is there stays.
func stale(rows price.Schedule, date string) price.Schedule {
	marked := make(price.Schedule, 0, len(rows))
	for _, row := range rows {
		copied := *row
		if copied.StaleSince == "" {
			copied.StaleSince = date
		}
		marked = append(marked, &copied)
	}
	return marked
}

// same tells whether two schedules charge the same.
func same(a, b price.Schedule) bool {
	return slices.EqualFunc(a, b, func(a, b *price.Row) bool { return a.ID == b.ID })
}

func fields(s price.Schedule) []map[string]string {
	var list []map[string]string
	for _, row := range s {
		f := row.Fields()
		if row.ValidFromMicros != 0 {
			f["valid_from"] = instant(row.ValidFromMicros)
		}
		list = append(list, f)
	}
	return list
}

// pricesInUse are the imported rows that some workspace's model could be priced
// by: provider and model in lower case, with and without a snapshot's day.
func (s *Service) pricesInUse(ctx context.Context) (map[[2]string]bool, error) {
	owners := []string{""}
	if err := s.each(ctx, "", kindWorkspaceName, func(o store.Object) error {
		owners = append(owners, o.ID)
		return nil
	}); err != nil {
		return nil, err
	}
	used := make(map[[2]string]bool)
	shared := map[string]string{}
	for _, owner := range owners {
		addresses := maps.Clone(shared)
		if err := s.each(ctx, owner, KindProvider, func(o store.Object) error {
			if p, err := route.DecodeProvider(o.Body); err == nil { // a broken one prices nothing
				addresses[o.Name] = p.BaseURL
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if owner == "" {
			shared = addresses
		}
		if err := s.each(ctx, owner, KindModel, func(o store.Object) error {
			m, err := route.DecodeModel(o.Body)
			if err != nil {
				return nil //nolint:nilerr // a broken one is called by nobody
			}
			provider := s.Prices.ProviderOf(addresses[m.Provider], m.Provider)
			used[[2]string{provider, strings.ToLower(m.Upstream)}] = true
			if base, ok := price.Undated(m.Upstream); ok {
				used[[2]string{provider, strings.ToLower(base)}] = true
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return used, nil
}
