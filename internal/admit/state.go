// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/route"
)

// missing finds an id in the request of something that the provider does not keep
// for this workspace: only the account that holds all of them can answer (DIS-8).
func (r *Request) missing(p *route.Provider) (id string, ok bool) {
	if p.SharedState {
		return "", false
	}
	for _, id := range r.Call.StateIDs {
		if !r.Held.Has(p.ID, id) {
			return id, true
		}
	}
	return "", false
}

// refuseState is the same whether the id is another workspace's, another
// account's, too old or made up.
func (r *Request) refuseState(id string) *fault.Fault {
	f := fault.New(fault.NotFound, "the request names %q, which this workspace has not made through this gateway at the provider of model %q; send its content instead", label(id), label(r.Call.Model))
	f.NoRetry = true
	f.Details = &fault.Details{LimitID: "model policy", Scope: "key", Subject: r.Key.Name}
	return f
}
