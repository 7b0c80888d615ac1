// SPDX-License-Identifier: Apache-2.0

// Package admit stands between a request and the ledger: it builds the one
// operation of an admission from key, call and configuration, and turns the
// ledger's results into faults, header readings and charges.
//
// It does no I/O and reads no clock, so the gateway, the simulation, simulate
// and explain use the same code.
package admit

import (
	"slices"
	"time"

	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// Target is a model with what it takes to call and to price it.
type Target struct {
	Model    *route.Model
	Provider *route.Provider
	Price    *price.Row // nil: unpriced (PRC-3)
	// Credential is what the provider is called with. It is never logged,
	// recorded or answered.
	Credential string
}

// Snapshot is a workspace's configuration at one generation. It is immutable.
type Snapshot struct {
	Generation int64
	Workspace  *tenant.Workspace
	Zone       *time.Location
	targets    map[string]*Target
	aliases    map[string]string // alias -> model name
}

// NewSnapshot builds a snapshot. A later target of the same name wins: callers
// put the shared ones first and the workspace's own last (SPEC section 14).
func NewSnapshot(generation int64, w *tenant.Workspace, zone *time.Location, targets []*Target) *Snapshot {
	s := &Snapshot{
		Generation: generation, Workspace: w, Zone: zone,
		targets: make(map[string]*Target, len(targets)), aliases: make(map[string]string),
	}
	for _, t := range targets {
		s.targets[t.Model.Name] = t
	}
	for _, t := range s.targets {
		for _, alias := range t.Model.Aliases {
			s.aliases[alias] = t.Model.Name
		}
	}
	return s
}

// Resolve finds the model that a sent name leads to, and the names by which an
// allow-list may admit it (KEY-5). Names are compared exactly.
func (s *Snapshot) Resolve(name string) (t *Target, via []string) {
	if t = s.targets[name]; t != nil {
		return t, nil
	}
	if model, ok := s.aliases[name]; ok {
		return s.targets[model], []string{name}
	}
	return nil, nil
}

// Models lists the names that a key may call, aliases included, sorted.
func (s *Snapshot) Models(k *tenant.Key) []string {
	var names []string
	for name := range s.targets {
		if tenant.Allows(k.AllowedModels, name, nil) {
			names = append(names, name)
		}
	}
	for alias, model := range s.aliases {
		if tenant.Allows(k.AllowedModels, model, []string{alias}) {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return names
}
