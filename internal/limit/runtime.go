// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/tenant"
)

// dimension is one of the three runtime limits (RUN-1, RUN-3).
type dimension struct {
	name             string
	kind             ledger.Kind
	wants, charges   ledger.Metric
	keyCode, topCode fault.Code
	value            func(tenant.RuntimeLimits) *int64
}

func dimensions() []dimension {
	return []dimension{
		{
			"rpm", ledger.KindBucket, ledger.Requests, ledger.MetricNone, fault.APIKeyRPMExceeded, fault.WorkspaceRPMExceeded,
			func(l tenant.RuntimeLimits) *int64 { return l.RPM },
		},
		{
			"tpm", ledger.KindBucket, ledger.Input, ledger.Tokens, fault.APIKeyTPMExceeded, fault.WorkspaceTPMExceeded,
			func(l tenant.RuntimeLimits) *int64 { return l.TPM },
		},
		{
			"concurrency", ledger.KindGauge, ledger.Slots, ledger.MetricNone,
			fault.APIKeyConcurrencyExceeded, fault.WorkspaceConcurrencyExceeded,
			func(l tenant.RuntimeLimits) *int64 { return l.Concurrency },
		},
	}
}

// runtime is the first part of check 5: the key's layer, then the workspace's,
// which always applies too (RUN-4).
func runtime(s Subject) []ledger.Check {
	var list []ledger.Check
	for _, d := range dimensions() {
		if v := d.value(s.Key.Limits); v != nil && *v > 0 {
			c := d.check(s.Workspace.ID, "key", s.Key.ID, *v, d.keyCode, s.Key.Limits.LeavesCacheReads())
			c.Origin = keyOrigin(s, "limits."+d.name)
			list = append(list, c)
		}
	}
	for _, d := range dimensions() {
		if v, origin := s.Workspace.Layer(tenant.Metric(d.name)); v > 0 {
			c := d.check(s.Workspace.ID, "workspace", "", v, d.topCode, s.Workspace.LayerLeavesCacheReads())
			c.Origin = origin
			list = append(list, c)
		}
	}
	return list
}

func (d dimension) check(workspace, scope, subject string, amount int64, code fault.Code, uncached bool) ledger.Check {
	c := ledger.Check{
		Counter: ledger.Counter{Workspace: workspace, Limit: scope + "." + d.name, Subject: subject},
		Kind:    d.kind, Mode: ledger.Take, Wants: d.wants, Charges: d.charges,
		Amount: amount, Code: code, Name: d.name, Scope: scope,
	}
	if uncached && c.Charges == ledger.Tokens {
		c.Charges = ledger.Uncached
	}
	return c
}
