// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/tenant"
)

// Bounds of values where they enter (SPEC RAT-7).
const (
	MaxWindowSeconds = 86_400
	MaxLimit         = 1_000_000_000_000
	MaxTag           = 64 // bytes of a tag
)

// The values of estimate.
const (
	full  = "full"
	input = "input"
)

// New returns a rule with every default: enabled, the whole estimate, cache
// reads counted. It is not valid yet.
func New(id, name string) *Rule { return &Rule{ID: id, Name: name, Enabled: true} }

// Read reads a rule as somebody declares or changes it, over the values that r
// has: a field that is left out stays. It validates the result and returns the
// paths that were given. Errors are document.Problems.
func (r *Rule) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, r.Fields)
}

// Fields reads the fields of a rule out of a document that may have more, and
// validates the result.
func (r *Rule) Fields(d *document.Reader) {
	kinds := make([]string, 0, len(Subjects()))
	for _, s := range Subjects() {
		kinds = append(kinds, string(s))
	}
	kind := string(r.SubjectKind)
	d.Choice("subject_kind", &kind, kinds...)
	r.SubjectKind = Subject(kind)
	d.String("subject_id", &r.SubjectID)
	d.String("model", &r.Model)
	d.Choice("metric", &r.Metric, Requests, Tokens)
	r.need(d, "window_seconds", &r.WindowSeconds, MaxWindowSeconds)
	r.need(d, "limit", &r.Limit, MaxLimit)
	readTrue(d, "enabled", &r.Enabled)
	estimate := full
	if r.EstimateInput {
		estimate = input
	}
	d.Choice("estimate", &estimate, full, input)
	r.EstimateInput = estimate == input
	cached := !r.Uncached
	readTrue(d, "count_cached", &cached)
	r.Uncached = !cached
	d.AddRest(r.Validate())
}

// need reads a whole number from 1 that has no default.
func (r *Rule) need(d *document.Reader, field string, into *int64, most int64) {
	n := d.Node(field)
	if *into == 0 && n == nil || n != nil && n.Kind == document.Null {
		d.Fail(field, "is required")
		return
	}
	d.Int(field, into, 1, most)
}

// readTrue reads what is true unless somebody says false.
func readTrue(d *document.Reader, field string, into *bool) {
	if n := d.Node(field); n != nil && n.Kind == document.Null {
		*into = true
		return
	}
	d.Bool(field, into)
}

// Validate tells everything that is wrong with a rule, as document.Problems
// whose paths are those of its JSON form. What it names (key, model) may not
// exist: that needs the workspace.
func (r *Rule) Validate() error {
	var problems document.Problems
	if r.Name != "" {
		if err := tenant.ValidLimitName(r.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	if !slices.Contains(Subjects(), r.SubjectKind) {
		problems.Add("subject_kind", "must be api_key, user, project, team, org or tag")
	} else if err := r.checkSubject(); err != nil {
		problems.Add("subject_id", "%v", err)
	}
	if r.Model != "" {
		if err := tenant.ValidModelName(r.Model); err != nil {
			problems.Add("model", "%v", err)
		}
	}
	if r.Metric != Requests && r.Metric != Tokens {
		problems.Add("metric", "must be %s or %s", Requests, Tokens)
	}
	if r.WindowSeconds < 1 || r.WindowSeconds > MaxWindowSeconds {
		problems.Add("window_seconds", "must be from 1 to %d", MaxWindowSeconds)
	}
	if r.Limit < 1 || r.Limit > MaxLimit {
		problems.Add("limit", "must be from 1 to %d", int64(MaxLimit))
	}
	if r.Metric == Requests && r.EstimateInput {
		problems.Add("estimate", "is for metric: tokens: leave it out")
	}
	if r.Metric == Requests && r.Uncached {
		problems.Add("count_cached", "is for metric: tokens: leave it out")
	}
	return problems.Err()
}

func (r *Rule) checkSubject() error {
	switch {
	case r.SubjectKind == SubjectOrg && r.SubjectID != "":
		return errors.New("subject_kind org is the whole workspace: leave it out")
	case r.SubjectKind == SubjectTag && r.SubjectID == "":
		return errors.New("is required: name the tag")
	case r.SubjectID == "":
		return nil
	case r.SubjectKind == SubjectTag:
		return ValidTag(r.SubjectID)
	case r.SubjectKind == SubjectKey:
		return tenant.ValidKeyName(r.SubjectID)
	default:
		return tenant.ValidSubject(r.SubjectID)
	}
}

// ValidTag tells what is wrong with a tag: 1 to 64 of letters, digits and
// ._:/=- (SPEC RAT-7).
func ValidTag(tag string) error {
	if tag == "" || len(tag) > MaxTag {
		return fmt.Errorf("must have 1 to %d characters", MaxTag)
	}
	for _, c := range []byte(tag) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case c == '.', c == '_', c == ':', c == '/', c == '=', c == '-':
		default:
			return fmt.Errorf("%s may have only letters, digits and ._:/=-", document.Quote(tag))
		}
	}
	return nil
}

// Counts reports whether r counts something else than its previous version did,
// so that it needs a counter, and an epoch, of its own (SPEC RAT-4): another
// window, model, metric or subject, tokens with cache reads instead of without,
// or anything after it was disabled. Name, amount and estimate change no count.
func (r *Rule) Counts(previous *Rule) bool {
	type count struct {
		kind                     Subject
		subjectID, model, metric string
		windowSeconds            int64
		uncached                 bool
	}
	of := func(r *Rule) count {
		return count{r.SubjectKind, r.SubjectID, r.Model, r.Metric, r.WindowSeconds, r.Uncached}
	}
	return of(r) != of(previous) || r.Enabled && !previous.Enabled
}

type form struct {
	SubjectKind   Subject `json:"subject_kind"`
	SubjectID     string  `json:"subject_id,omitempty"`
	Model         string  `json:"model,omitempty"`
	Metric        string  `json:"metric"`
	WindowSeconds int64   `json:"window_seconds"`
	Limit         int64   `json:"limit"`
	Enabled       bool    `json:"enabled"`
	Estimate      string  `json:"estimate,omitempty"`
	CountCached   *bool   `json:"count_cached,omitempty"`
}

// Encode writes a rule's JSON form, the same for equal ones.
func Encode(r *Rule) ([]byte, error) {
	f := form{
		SubjectKind: r.SubjectKind, SubjectID: r.SubjectID, Model: r.Model, Metric: r.Metric,
		WindowSeconds: r.WindowSeconds, Limit: r.Limit, Enabled: r.Enabled,
	}
	if r.EstimateInput {
		f.Estimate = input
	}
	if r.Uncached {
		f.CountCached = new(bool)
	}
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode a rate rule: %w", err)
	}
	return body, nil
}

// Decode reads what Encode wrote. ID, Name and Epoch are the caller's to set.
func Decode(body []byte) (*Rule, error) {
	r := New("", "")
	n, err := document.ParseJSON(body)
	if err == nil {
		_, err = document.Read(n, r.Fields)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a rate rule: %w", err)
	}
	return r, nil
}
