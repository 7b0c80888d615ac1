// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"sync"

	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/tenant"
)

// maxCompiled bounds the keys whose checks are kept; then they are compiled anew.
const maxCompiled = 10_000

// compiled keeps the checks of the keys that were seen: a key is not changed
// once it is read, nor is a workspace, so neither are their checks.
type compiled struct {
	mu   sync.RWMutex
	keys map[*tenant.Key]*limit.Compiled
}

func newCompiled() *compiled { return &compiled{keys: map[*tenant.Key]*limit.Compiled{}} }

// checks are the limits that apply to a key. The result is shared: callers copy
// what they change.
func (s *Snapshot) checks(k *tenant.Key) *limit.Compiled {
	s.compiled.mu.RLock()
	c := s.compiled.keys[k]
	s.compiled.mu.RUnlock()
	if c != nil {
		return c
	}
	fresh := limit.Compile(limit.Subject{Workspace: s.Workspace, Key: k, Zone: s.Zone})
	s.compiled.mu.Lock()
	defer s.compiled.mu.Unlock()
	if len(s.compiled.keys) >= maxCompiled {
		clear(s.compiled.keys)
	}
	s.compiled.keys[k] = &fresh
	return &fresh
}
