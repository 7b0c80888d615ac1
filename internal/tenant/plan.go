// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"

	"github.com/weirhq/weir/internal/document"
)

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

// Read reads a plan as somebody declares or changes it, over the values that p
// has: a field that is left out stays, a null clears it. It validates the result
// and returns the paths that were given. Errors are document.Problems.
func (p *Plan) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, p.Fields)
}

// Fields reads the fields of a plan out of a document that may have more, and
// validates them.
func (p *Plan) Fields(r *document.Reader) {
	readModels(r, &p.AllowedModels)
	r.OptInt("max_output_tokens", &p.MaxOutputTokens, 0, MaxTokens)
	r.AddRest(p.Validate())
}

// Validate tells everything that is wrong with a plan, as document.Problems
// whose paths are those of its JSON form.
func (p *Plan) Validate() error {
	var problems document.Problems
	if p.Name != "" {
		if err := ValidPlanName(p.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	checkModels(p.AllowedModels, p.MaxOutputTokens, &problems)
	return problems.Err()
}

type planForm struct {
	AllowedModels   *[]string `json:"allowed_models,omitempty"`
	MaxOutputTokens *int64    `json:"max_output_tokens,omitempty"`
}

// EncodePlan writes a plan's JSON form, the same for equal ones.
func EncodePlan(p *Plan) ([]byte, error) {
	return encodeForm("a plan", planForm{AllowedModels: p.AllowedModels, MaxOutputTokens: p.MaxOutputTokens})
}

// DecodePlan reads what EncodePlan wrote. ID and Name are the caller's to set.
func DecodePlan(body []byte) (*Plan, error) {
	p := &Plan{}
	n, err := document.ParseJSON(body)
	if err == nil {
		_, err = p.Read(n)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a plan: %w", err)
	}
	return p, nil
}
