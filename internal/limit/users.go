// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// UsersCounter counts the users that requests of a workspace have named, and
// UserMarker stands for one of them (KEY-7).
func UsersCounter(workspace string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: "users"}
}

// UserMarker is the row that a named user's first admitted request makes.
func UserMarker(workspace, user string) ledger.Counter {
	return ledger.Counter{Workspace: workspace, Limit: "user", Subject: user}
}

// users bounds the users that requests may name: each gets counters of its own.
func users(s Subject) []ledger.Check {
	if !s.Named {
		return nil
	}
	return []ledger.Check{{
		Counter: UsersCounter(s.Workspace.ID), Marker: UserMarker(s.Workspace.ID, s.User),
		Kind: ledger.KindRoster, Mode: ledger.Take, Wants: ledger.Requests,
		Amount: s.Workspace.MaxUsers, Code: fault.UserLimitReached,
		Name: "users", Scope: "workspace", Origin: "max_users",
	}}
}
