// SPDX-License-Identifier: Apache-2.0

package tenant

// KindPlan is the kind of object that a plan is.
const KindPlan = "plan"

// Plan is a named set of limits that keys refer to. What a plan and its key both
// limit, both limit (SPEC 14): a model must be allowed by both, and the smaller
// output maximum counts. Its budgets are objects of their own, each with a
// separate counter for each key (SPEC 1).
//
// ID and Name stand beside its JSON form, not in it. Keys name it by its name.
type Plan struct {
	ID, Name        string
	AllowedModels   *[]string // as Key's
	MaxOutputTokens *int64    // as Key's
}
