// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/route"
)

// Keeper remembers what providers keep for workspaces (DIS-8).
type Keeper interface {
	// Keep returns when it is remembered: durably, unless the store is down.
	Keep(list []route.Kept)
	// Held finds which providers keep what ids name. An error means that nobody
	// could tell.
	Held(ctx context.Context, workspace string, ids []string) (route.Holdings, error)
}

// look finds which providers keep what the request names.
func (x *exchange) look() *fault.Fault {
	if len(x.call.StateIDs) == 0 || x.snapshot.SharesState(x.call.Model) {
		return nil
	}
	if !x.g.Teller.Healthy() {
		return unavailable() // at once, not when the store has been waited for (RES-8)
	}
	held, err := x.g.Keeper.Held(x.r.Context(), x.snapshot.Workspace.ID, x.call.StateIDs)
	if err != nil {
		x.g.Log.Warn("nobody could tell whose an id is", "request_id", x.id.String(), "error", err)
		return unavailable()
	}
	x.held = held
	return nil
}

// keep remembers what the answer has made at the provider, before its end leaves:
// the client may name it in its next request, on any replica (DIS-8).
func (x *exchange) keep() {
	found := x.ending.Observed.Kept
	if len(found) == 0 {
		return
	}
	p := x.planned.Provider
	named := map[string]bool{}
	if p.SharedState { // whose that is was not looked at
		for _, id := range x.call.StateIDs {
			named[id] = true
		}
	}
	list := make([]route.Kept, 0, len(found))
	for _, k := range found {
		if named[k.ID] || x.call.Unstored && k.Stored() {
			continue
		}
		list = append(list, route.Kept{
			Workspace: x.reservation.Workspace, Provider: p.ID, Kind: k.Kind, Hash: route.HashKept(k.ID),
		})
	}
	x.g.Keeper.Keep(list)
}
