// SPDX-License-Identifier: Apache-2.0

// Package admin is the administration of Weir: keys, funds, reports, explaining,
// verifying, and applying the configuration file. Each operation is a method of
// Service that needs no HTTP; http.go binds the same methods to /api/v1, and
// package client calls them from there.
//
// Permissions are in one table, validation is the domain's own, and every
// change and its audit commit together. It decides no request (ledger).
package admin

// Role is what an actor may do.
type Role string

// The roles, each with the rights of those before it (SPEC ADM-2). Viewer,
// editor and admin are of one workspace, system is over all.
const (
	Viewer Role = "viewer"
	Editor Role = "editor"
	Admin  Role = "admin"
	System Role = "system"
)

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{Viewer, Editor, Admin, System} }

// rank orders roles; a role that is unknown is below all of them.
func (r Role) rank() int {
	for i, known := range Roles() {
		if r == known {
			return i + 1
		}
	}
	return 0
}

// Actor is who asks for an operation.
type Actor struct {
	// Name stands in the audit: "admin token", "socket", "file".
	Name string
	Role Role
	// Workspace is the name of the workspace that the operation is about; empty
	// is "default". Who makes an actor of another role than System sets the one
	// that its token belongs to.
	Workspace string
}
