// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// check tells what is wrong between the parts of a file, each of which may be
// right.
func (p *parser) check() document.Problems {
	var problems document.Problems
	fail := func(at place, format string, args ...any) {
		problems = append(problems, document.Problem{Path: at.path, Line: at.line, Text: fmt.Sprintf(format, args...)})
	}
	p.checkNames(fail)
	p.checkRenames(fail)
	p.checkBindings(fail)
	p.checkSecrets(fail)
	if p.file.Process.Store == Memory {
		for _, at := range p.remembered {
			fail(at, "store: memory keeps nothing, so this could not be held: use store: sqlite:weir.db, or remove it")
		}
	}
	return problems
}

type failFunc func(at place, format string, args ...any)

// checkNames holds names to one use each. Those of models and aliases share one
// space, in which no two may differ only in the case of letters (SPEC KEY-5). A
// workspace's own model may have a shared one's name, and wins (SPEC 14).
func (p *parser) checkNames(fail failFunc) {
	type use struct {
		space
		kind, name string
	}
	first := map[use]named{}
	for _, n := range p.names {
		key := use{n.space, n.kind, n.name}
		if n.kind == route.KindModel {
			key.name = strings.ToLower(n.name)
		}
		if other, taken := first[key]; taken {
			// A model holds its own aliases apart itself.
			if other.object != n.object {
				fail(n.place, "%s is taken on line %d%s: choose another", document.Quote(n.name), other.line, spelled(other.name, n.name))
			}
			continue
		}
		first[key] = n
	}
	for _, n := range p.names {
		if n.kind != route.KindModel || n.scope == "" || !p.inherits(n.scope) {
			continue
		}
		shared, taken := first[use{space{}, n.kind, strings.ToLower(n.name)}]
		if taken && shared.name != n.name {
			fail(n.place, "%s is taken on line %d%s: choose another", document.Quote(n.name), shared.line, spelled(shared.name, n.name))
		}
	}
}

func spelled(a, b string) string {
	if a == b {
		return ""
	}
	return ", spelled " + document.Quote(a)
}

func (p *parser) inherits(workspace string) bool {
	for i := range p.file.Workspaces {
		if w := &p.file.Workspaces[i]; w.Name == workspace {
			return w.Settings.Inherit
		}
	}
	return true
}

// checkRenames: an old name can't be in use, nor be given to two.
func (p *parser) checkRenames(fail failFunc) {
	type use struct {
		space
		kind, name string
	}
	live, renamed := map[use]int{}, map[use]int{}
	for _, n := range p.names {
		if !n.alias {
			live[use{n.space, n.kind, n.name}] = n.line
		}
	}
	for _, n := range p.names {
		if n.was == "" || n.was == n.name {
			continue
		}
		key := use{n.space, n.kind, n.was}
		if other, taken := live[key]; taken {
			fail(n.wasPlace, "%s is still declared on line %d: rename that one, or leave was out", document.Quote(n.was), other)
		}
		if other, taken := renamed[key]; taken {
			fail(n.wasPlace, "%s is renamed on line %d already", document.Quote(n.was), other)
		}
		renamed[key] = n.wasPlace.line
	}
}

// checkBindings: a model's provider is declared where the model can see it.
func (p *parser) checkBindings(fail failFunc) {
	declared := map[[2]string]bool{}
	for _, n := range p.names {
		if n.kind == route.KindProvider {
			declared[[2]string{n.scope, n.name}] = true
		}
	}
	for _, b := range p.bindings {
		if declared[[2]string{b.scope, b.provider}] || b.inherits && declared[[2]string{"", b.provider}] {
			continue
		}
		fail(b.place, "no provider %s is declared: declare it under providers", document.Quote(b.provider))
	}
}

// checkSecrets: one secret opens one thing (SPEC 14). Two providers may share a
// credential, because one account can stand behind both.
func (p *parser) checkSecrets(fail failFunc) {
	first := map[[32]byte]placedSecret{}
	for _, s := range p.secrets {
		other, taken := first[s.hash]
		if !taken {
			first[s.hash] = s
			continue
		}
		if s.upstream && other.upstream {
			continue
		}
		fail(s.place, "is the secret of %s on line %d: each needs its own", other.path, other.line)
	}
	token := p.file.Process.AdminToken
	if token == "" {
		return
	}
	if s, taken := first[tenant.HashSecret(token)]; taken && s.path != "admin_token" {
		fail(s.place, "is the admin token: each needs its own")
	}
}
