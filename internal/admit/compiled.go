// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/tenant"
)

// maxCompiled bounds the keys whose checks are kept; then they are compiled anew.
const maxCompiled = 10_000

// compiled keeps the checks of the keys that were seen: a key is not changed
// once it is read, nor is a workspace, so neither are their checks.
type compiled struct {
	mu   sync.RWMutex
	keys map[*tenant.Key]*checkList
}

// checkList are the checks of a request, apart and in one list.
type checkList struct {
	limit.Compiled
	all []ledger.Check
}

func newCompiled() *compiled { return &compiled{keys: map[*tenant.Key]*checkList{}} }

func (s *Snapshot) compile(k *tenant.Key, who Attribution) *checkList {
	c := &checkList{Compiled: limit.Compile(limit.Subject{
		Workspace: s.Workspace, Key: k, Zone: s.Zone, Set: s.Limits, User: who.user(k), Named: who.User != "", Tags: who.Tags,
	})}
	c.all = append(append(make([]ledger.Check, 0, len(c.Before)+len(c.After)), c.Before...), c.After...)
	for i := range c.Narrowed {
		// Limits are on models, whatever they are called by (KEY-5, RAT-2).
		if t, _ := s.Resolve(c.Narrowed[i].Model); t != nil {
			c.Narrowed[i].Model = t.Model.Name
		}
	}
	return c
}

// with is the list with a check 3 that refuses at its place, nil for none. The
// shared list is given out as it is when nothing in it is named anew for each
// request: the windows of fixed checks are.
func (c *checkList) with(policy *ledger.Check) []ledger.Check {
	fixed := slices.ContainsFunc(c.all, func(c ledger.Check) bool { return c.Kind == ledger.KindFixed })
	if policy == nil && !fixed {
		return c.all[:len(c.all):len(c.all)]
	}
	list := append(make([]ledger.Check, 0, len(c.all)+1), c.Before...)
	if policy != nil {
		list = append(list, *policy)
	}
	return append(list, c.After...)
}

// own are the checks that are narrowed to a candidate's model or provider, and
// what they and the common ones mean for it.
func (c *checkList) own(t *Target) ([]ledger.Check, limit.Effect) {
	var list []ledger.Check
	effect := c.Effect
	for i := range c.Narrowed {
		n := &c.Narrowed[i]
		if n.Model == t.Model.Name && n.Model != "" || n.Provider == t.Provider.Name && n.Provider != "" {
			list = append(list, n.Check)
			effect.See(&n.Check)
		}
	}
	return list, effect
}

// checks are the limits that apply to a key's request. The result is shared:
// callers copy what they change. What a request names itself is compiled for it
// alone.
func (s *Snapshot) checks(k *tenant.Key, who Attribution) *checkList {
	if who.User != "" || len(who.Tags) > 0 && s.Limits.CountsTags() {
		return s.compile(k, who)
	}
	s.compiled.mu.RLock()
	c := s.compiled.keys[k]
	s.compiled.mu.RUnlock()
	if c != nil {
		return c
	}
	fresh := s.compile(k, Attribution{})
	s.compiled.mu.Lock()
	defer s.compiled.mu.Unlock()
	if len(s.compiled.keys) >= maxCompiled {
		clear(s.compiled.keys)
	}
	s.compiled.keys[k] = fresh
	return fresh
}
