// SPDX-License-Identifier: Apache-2.0

// Package admit stands between a request and the ledger: it builds the one
// operation of an admission from key, call and configuration, and turns the
// ledger's results into faults, header readings and charges.
//
// It does no I/O and reads no clock, so the gateway, the simulation, simulate
// and explain use the same code.
package admit

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// Target is a model with what it takes to call and to price it.
type Target struct {
	Model *route.Model
	// Provider is nil when there is none of the name that the model has. Such a
	// target keeps its names for itself and can't be called.
	Provider *route.Provider
	// Shared: the model belongs to all workspaces, not to this one alone.
	Shared bool
	Price  *price.Row // nil: unpriced (PRC-3)
	// Credential is what the provider is called with. It is never logged,
	// recorded or answered.
	Credential string
	// priced is Price as it is kept with each request: a row that is replaced
	// later still explains what was charged by it (PRC-2).
	priced json.RawMessage
}

// Snapshot is a workspace's configuration at one generation. It is immutable.
type Snapshot struct {
	Generation int64
	Workspace  *tenant.Workspace
	Zone       *time.Location
	// Limits are the workspace's plans, budgets and rules; nil: it has none.
	Limits   *limit.Set
	targets  map[string]*Target
	aliases  map[string]string // alias -> model name
	compiled *compiled
}

// NewSnapshot builds a snapshot. Models and aliases share one space of names
// (KEY-5), and what the workspace itself declares takes a name from what is
// shared (SPEC section 14): a shared model whose name is taken is not there at
// all, a shared alias that is taken leads where the workspace says. Among equals
// a model goes before an alias, and the first alias before later ones; of two
// models of one name the last wins.
func NewSnapshot(generation int64, w *tenant.Workspace, zone *time.Location, limits *limit.Set, targets []*Target) *Snapshot {
	s := &Snapshot{
		Generation: generation, Workspace: w, Zone: zone, Limits: limits,
		targets: make(map[string]*Target, len(targets)), aliases: make(map[string]string),
		compiled: newCompiled(),
	}
	own := make(map[string]bool)
	for _, t := range targets {
		if t.Price != nil {
			t.priced, _ = t.Price.AppendJSON(nil) // a row that was read can be written
		}
		if t.Shared {
			continue
		}
		own[t.Model.Name] = true
		for _, alias := range t.Model.Aliases {
			own[alias] = true
		}
	}
	for _, t := range targets {
		if !t.Shared || !own[t.Model.Name] {
			s.targets[t.Model.Name] = t
		}
	}
	for _, t := range targets {
		if s.targets[t.Model.Name] != t {
			continue
		}
		for _, alias := range t.Model.Aliases {
			if _, taken := s.aliases[alias]; !taken && s.targets[alias] == nil && (!t.Shared || !own[alias]) {
				s.aliases[alias] = t.Model.Name
			}
		}
	}
	return s
}

// Resolve finds the model that a sent name leads to, and the names by which an
// allow-list may admit it (KEY-5). Names are compared exactly.
func (s *Snapshot) Resolve(name string) (t *Target, via []string) {
	if t = s.targets[name]; t == nil {
		t, via = s.targets[s.aliases[name]], []string{name}
	}
	if t == nil || t.Provider == nil {
		return nil, nil
	}
	return t, via
}

// SharesState tells whether the model that a sent name leads to is an account's that
// this workspace alone uses: what the provider keeps there is its own (DIS-8).
func (s *Snapshot) SharesState(name string) bool {
	t, _ := s.Resolve(name)
	return t != nil && t.Provider.SharedState
}

// allows: what a key and its plan both list, both must allow (SPEC 14).
func (s *Snapshot) allows(k *tenant.Key, t *Target, via []string) bool {
	if plan := s.Limits.Plan(k.Plan); plan != nil && !tenant.Allows(plan.AllowedModels, t.Model.Name, via) {
		return false
	}
	return tenant.Allows(k.AllowedModels, t.Model.Name, via)
}

// listed tells whether a key or its plan has a list of models at all.
func (s *Snapshot) listed(k *tenant.Key) bool {
	plan := s.Limits.Plan(k.Plan)
	return k.AllowedModels != nil || plan != nil && plan.AllowedModels != nil
}

// outputCeiling is the smaller maximum of a key and its plan; 0: none.
func (s *Snapshot) outputCeiling(k *tenant.Key) int64 {
	most := positive(k.MaxOutputTokens)
	if plan := s.Limits.Plan(k.Plan); plan != nil {
		if n := positive(plan.MaxOutputTokens); n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

func positive(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(0, *n)
}

// Models lists the names that a key may call, aliases included, sorted.
func (s *Snapshot) Models(k *tenant.Key) []string {
	return s.models(k, func(*Target) bool { return true })
}

// ModelsOf are those of Models whose providers speak a protocol: what its doors
// serve.
func (s *Snapshot) ModelsOf(k *tenant.Key, protocol string) []string {
	return s.models(k, func(t *Target) bool { return t.Provider.Protocol == protocol })
}

func (s *Snapshot) models(k *tenant.Key, shown func(t *Target) bool) []string {
	var names []string
	add := func(name string) {
		if t, via := s.Resolve(name); t != nil && shown(t) && s.allows(k, t, via) {
			names = append(names, name)
		}
	}
	for name := range s.targets {
		add(name)
	}
	for alias := range s.aliases {
		add(alias)
	}
	slices.Sort(names)
	return names
}
