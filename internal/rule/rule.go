// SPDX-License-Identifier: Apache-2.0

// Package rule says what a rate rule is: at most so many requests or tokens of
// one subject in any window of a length (SPEC RAT-1 to RAT-7), with its strict
// JSON form.
//
// It decides nothing: package limit compiles rules into checks, and package
// ledger evaluates those.
package rule

// KindRule is the kind of object that a rate rule is.
const KindRule = "rate_limit"

// MaxRules bounds the rules of a workspace.
const MaxRules = 200

// Subject says whose rate a rule bounds.
type Subject string

// The subjects in the order in which their rules are checked.
const (
	SubjectKey     Subject = "api_key"
	SubjectUser    Subject = "user"
	SubjectProject Subject = "project"
	SubjectTeam    Subject = "team"
	SubjectOrg     Subject = "org"
	SubjectTag     Subject = "tag"
)

// Subjects lists the subjects in the order of their checks.
func Subjects() []Subject {
	return []Subject{SubjectKey, SubjectUser, SubjectProject, SubjectTeam, SubjectOrg, SubjectTag}
}

// The metrics.
const (
	Requests = "requests"
	Tokens   = "tokens"
)

// Rule is one rate rule. ID, Name and Epoch stand beside its JSON form, not in
// it.
type Rule struct {
	ID, Name string
	// Epoch grows when what is counted changes or the rule is enabled again, which
	// Counts tells (SPEC RAT-4).
	Epoch       uint32
	SubjectKind Subject
	// SubjectID is a key's id, a tag, or the name of a user, project or team.
	// Empty: each one separately; always empty for org, never for tag.
	SubjectID string
	// Model narrows the rule to what is sent to one model, however it was named;
	// a route's name to the requests that name it. Empty: none.
	Model         string
	Metric        string // Requests or Tokens
	WindowSeconds int64  // 1 to 86,400
	Limit         int64  // 1 to 10^12
	Enabled       bool
	// EstimateInput asks for the input estimate alone at admission, as TPM does
	// (SPEC RAT-1, estimate: input).
	EstimateInput bool
	// Uncached leaves cache reads out (SPEC USE-3, count_cached: false).
	Uncached bool
}
