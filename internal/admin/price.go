// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
)

// PriceList is one page of prices: of the workspace's models, which are in
// force, then what was imported, then the built-in catalogue (SPEC PRC-2).
func (s *Service) PriceList(ctx context.Context, a Actor, r PriceListRequest) (PriceListAnswer, error) {
	out := PriceListAnswer{Catalogue: s.Prices.Source(), Date: s.Prices.Date(), Prices: []PriceEntry{}}
	c, err := s.enter(ctx, a, OpPriceList)
	if err != nil {
		return out, err
	}
	size, err := pageSize(r.Limit)
	if err != nil {
		return out, err
	}
	start, err := offset(r.Cursor)
	if err != nil {
		return out, err
	}
	configured, err := s.configured(ctx, c, r)
	if err != nil {
		return out, answer(err)
	}
	var entries []*price.Entry
	if !r.Models {
		imported, err := s.importedEntries(ctx, c, r)
		if err != nil {
			return out, answer(err)
		}
		configured = append(configured, imported...)
		entries = s.Prices.List(price.Filter{Provider: r.Provider, Contains: r.Contains})
	}
	end := min(start+size, len(configured)+len(entries))
	for i := start; i < end; i++ {
		if i < len(configured) {
			out.Prices = append(out.Prices, configured[i])
			continue
		}
		entry, err := viewEntry(entries[i-len(configured)])
		if err != nil {
			return out, answer(err)
		}
		out.Prices = append(out.Prices, entry)
	}
	if end < len(configured)+len(entries) {
		out.NextCursor = cursorAfter(strconv.Itoa(end))
	}
	return out, nil
}

func offset(cursor string) (int, error) {
	place, err := placeOf(cursor)
	if err != nil || place == "" {
		return 0, err
	}
	n, err := strconv.Atoi(place)
	if err != nil || n < 0 {
		return 0, refuse("cursor", "is not one that this list answered with")
	}
	return n, nil
}

func (s *Service) configured(ctx context.Context, c *scope, r PriceListRequest) ([]PriceEntry, error) {
	models, err := s.models(ctx, c)
	if err != nil {
		return nil, err
	}
	var list []PriceEntry
	for i := range models {
		m := &models[i]
		if r.Provider != "" && m.Provider != r.Provider || !strings.Contains(strings.ToLower(m.Name), strings.ToLower(r.Contains)) {
			continue
		}
		list = append(list, PriceEntry{
			Provider: m.Provider, Model: m.Name, Configured: true, ContextTokens: m.ContextTokens, Price: m.Price,
		})
	}
	return list, nil
}

func viewEntry(e *price.Entry) (PriceEntry, error) {
	out := PriceEntry{Provider: e.Provider, Model: e.Model, ContextTokens: e.ContextTokens, Omitted: e.Omitted}
	row, ok := e.Row()
	if !ok {
		return out, nil
	}
	var err error
	out.Price, err = viewPrice(row)
	return out, err
}

// viewPrice is a row as its own JSON form has it.
func viewPrice(row *price.Row) (*PriceView, error) {
	text, err := row.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	var out PriceView
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("show price %s: %w", row.ID, err)
	}
	return &out, nil
}

// PriceShow is the price of a model of the workspace, or of the catalogue's when
// a provider is named or the workspace has no such model.
func (s *Service) PriceShow(ctx context.Context, a Actor, r PriceShowRequest) (PriceEntry, error) {
	c, err := s.enter(ctx, a, OpPriceShow)
	if err != nil {
		return PriceEntry{}, err
	}
	if r.Model == "" {
		return PriceEntry{}, refuse("model", "is required")
	}
	target, err := s.target(ctx, c, r.Model)
	if err != nil {
		return PriceEntry{}, answer(err)
	}
	if r.Provider == "" && target != nil {
		out := PriceEntry{Provider: target.Provider.Name, Model: target.Model.Name, Configured: true, ContextTokens: target.Model.ContextTokens}
		if target.Price != nil {
			out.Price, err = viewPrice(target.Price)
		}
		return out, answer(err)
	}
	out, err := s.listed(ctx, c, r.Provider, r.Model)
	return out, answer(err)
}

// listed is what the sources below a workspace's own say about a model.
func (s *Service) listed(ctx context.Context, c *scope, provider, model string) (PriceEntry, error) {
	row, provider, err := s.underlying(ctx, c, provider, model)
	if err != nil {
		return PriceEntry{}, err
	}
	out := PriceEntry{Provider: provider, Model: model}
	if entry, ok := s.Prices.Lookup(provider, model); ok {
		out.ContextTokens, out.Omitted = entry.ContextTokens, entry.Omitted
	}
	if row == nil {
		return out, nil
	}
	if row.Source == price.SourceImported {
		out.Omitted = nil
	}
	out.Model = row.Model
	out.Price, err = viewPrice(row)
	return out, err
}

// underlying is the row in force now of a model that no workspace has bound, nil
// for none, and the provider whose it is. Without a provider it is the one whose
// models are called so, else the first of which such a model was imported.
func (s *Service) underlying(ctx context.Context, c *scope, provider, model string) (*price.Row, string, error) {
	imports, err := s.imports(ctx, c)
	if err != nil {
		return nil, "", err
	}
	if provider == "" {
		provider = s.providerOf(imports, model)
	} else {
		provider = s.Prices.ProviderOf("", provider)
	}
	source := price.Sources{Imported: imports[provider], BuiltIn: s.Prices, Provider: provider, Model: model}
	row, _ := source.At(c.at)
	if _, known := s.Prices.Lookup(provider, model); row == nil && !known {
		return nil, "", fault.New(fault.NotFound, "neither the workspace nor the catalogue knows the model %s", document.Quote(model))
	}
	return row, provider, nil
}

func (s *Service) providerOf(imports map[string]*price.Import, model string) string {
	if entry, ok := s.Prices.Lookup("", model); ok {
		return entry.Provider
	}
	for _, provider := range slices.Sorted(maps.Keys(imports)) {
		if imports[provider].Models[strings.ToLower(model)] != nil {
			return provider
		}
	}
	return ""
}

// imports are the imported rows that the workspace sees, by provider.
func (s *Service) imports(ctx context.Context, c *scope) (map[string]*price.Import, error) {
	all := make(map[string]*price.Import)
	if !c.workspace.Inherit {
		return all, nil
	}
	err := s.each(ctx, "", price.KindImport, func(o store.Object) error {
		i, err := price.DecodeImport(o.Body)
		if err == nil {
			all[i.Provider] = i
		}
		return err
	})
	return all, err
}

// importedEntries are the chosen imported rows, those of each day.
func (s *Service) importedEntries(ctx context.Context, c *scope, r PriceListRequest) ([]PriceEntry, error) {
	imports, err := s.imports(ctx, c)
	if err != nil {
		return nil, err
	}
	var list []PriceEntry
	for _, provider := range slices.Sorted(maps.Keys(imports)) {
		if r.Provider != "" && r.Provider != provider {
			continue
		}
		for _, row := range imports[provider].Rows() {
			if !strings.Contains(strings.ToLower(row.Model), strings.ToLower(r.Contains)) {
				continue
			}
			view, err := viewPrice(row)
			if err != nil {
				return nil, err
			}
			list = append(list, PriceEntry{Provider: provider, Model: row.Model, Price: view})
		}
	}
	return list, nil
}

// target is a model of the workspace with its price; nil when it has none of
// that name.
func (s *Service) target(ctx context.Context, c *scope, model string) (*admit.Target, error) {
	snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
	if err != nil {
		return nil, err
	}
	target, _ := snapshot.Resolve(model)
	return target, nil
}
