// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// Declared is one object as the file wants it, for comparing with a store. The
// identity of a declared thing is (workspace, kind, name).
type Declared struct {
	// Workspace is the owner's name; empty is shared by all. A workspace owns
	// itself.
	Workspace, Kind, Name string
	Was                   string // the name before, empty: none
	Body                  []byte // the kind's JSON form, the same for equal ones
	// Explicit are the paths of a key that the file gives (SPEC KEY-4).
	Explicit map[string]bool
	// Credential is a provider's; "" for one with auth: none, nil for the other
	// kinds.
	Credential *string
	SecretHash *[32]byte // a key's
	Origin     string    // FILE:LINE
}

// scope is what is declared for one owner of models.
type scope struct {
	name      string
	providers []Provider
	models    []Model
}

func (f *File) scopes() []scope {
	all := []scope{{"", f.Providers, f.Models}}
	for _, w := range f.Workspaces {
		all = append(all, scope{w.Name, w.Providers, w.Models})
	}
	return all
}

// Desired lists every declared object: workspaces, then providers and models,
// then keys, so that each stands after what it needs.
func (f *File) Desired() ([]Declared, error) {
	var all []Declared
	add := func(d Declared, line int, body []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s:%d: %w", f.Name, line, err)
		}
		d.Body, d.Origin = body, fmt.Sprintf("%s:%d", f.Name, line)
		all = append(all, d)
		return nil
	}
	for _, w := range f.Workspaces {
		if !w.Declared {
			continue
		}
		body, err := tenant.EncodeWorkspace(w.Settings)
		if err := add(Declared{Workspace: w.Name, Kind: tenant.KindWorkspace, Name: w.Name, Was: w.Was}, w.Line, body, err); err != nil {
			return nil, err
		}
	}
	for _, s := range f.scopes() {
		for _, v := range s.providers {
			body, err := route.EncodeProvider(v.Value)
			d := Declared{Workspace: s.name, Kind: route.KindProvider, Name: v.Value.Name, Was: v.Was, Credential: &v.Credential}
			if err := add(d, v.Line, body, err); err != nil {
				return nil, err
			}
		}
		for _, m := range s.models {
			body, err := route.EncodeModel(m.Value)
			d := Declared{Workspace: s.name, Kind: route.KindModel, Name: m.Value.Name, Was: m.Was}
			if err := add(d, m.Line, body, err); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range f.Workspaces {
		for _, k := range w.Keys {
			body, err := tenant.EncodeKey(k.Value)
			d := Declared{
				Workspace: w.Name, Kind: tenant.KindKey, Name: k.Value.Name, Was: k.Was,
				Explicit: k.Explicit, SecretHash: &k.SecretHash,
			}
			if err := add(d, k.Line, body, err); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
