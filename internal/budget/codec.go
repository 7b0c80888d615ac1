// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/window"
)

// Words of the JSON form beside those of Budget.
const (
	block  = "block"  // A's guard
	record = "record" // A's soft
	charge = "charge"
	skip   = "skip"
	refuse = "refuse"
	shrink = "shrink"
	now    = "now"
)

var errWindow = errors.New("must be a length of whole seconds, minutes, hours, days or weeks from 10s to 366d, such as 1h or 30d; for a calendar day, week or month write period")

// calendarWords are what people write for a calendar period.
var calendarWords = map[string]string{
	"day": Day, "daily": Day, "week": Week, "weekly": Week, "month": Month, "monthly": Month,
}

// Read reads a budget as somebody declares or changes it, over the values that b
// has: a field that is left out stays. A field that excludes another takes its
// place: a window that of a period, a model that of a provider. It validates the
// result and returns the paths that were given. Errors are document.Problems.
func (b *Budget) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, b.Fields)
}

// Fields reads the fields of a budget out of a document that may have more, sets
// the enforcement where nobody did, and validates the result.
func (b *Budget) Fields(r *document.Reader) {
	b.readScope(r)
	b.readLimit(r)
	b.readWindow(r)
	b.readNarrowing(r)
	b.readWarnings(r)
	b.readEnforcement(r)
	b.readCounting(r)
	b.Default()
	r.AddRest(b.Validate())
}

// Default sets the enforcement of a budget that has none: guard for keys and
// plans, as A has it, hard for the other scopes, as N has it.
func (b *Budget) Default() {
	if b.Enforcement != "" {
		return
	}
	b.Enforcement = Hard
	if b.perKey() {
		b.Enforcement = Guard
	}
}

func (b *Budget) readScope(r *document.Reader) {
	scope := string(b.Scope)
	r.Choice("scope", &scope, words(Scopes())...)
	b.Scope = Scope(scope)
	if given(r, "subject") && given(r, "subject_id") {
		r.Fail("subject_id", "is another name of subject: leave one out")
	}
	r.String("subject", &b.Subject)
	r.String("subject_id", &b.Subject)
}

// readLimit reads dollars or tokens. An amount of the one is none of the other.
func (b *Budget) readLimit(r *document.Reader) {
	before := b.Metric
	r.Choice("metric", &b.Metric, Spend, Tokens)
	n := r.Node("limit")
	switch {
	case n == nil && before == b.Metric:
	case n == nil || n.Kind == document.Null:
		r.Fail("limit", "is required")
	case b.Metric == Tokens:
		r.Int("limit", &b.Limit, 1, MaxTokens)
	case b.Metric == Spend:
		r.Decimal("limit", func(s string) error {
			amount, err := money.ParseUSD(s)
			if err == nil && amount == 0 {
				err = errors.New("must be above 0: without a limit leave the budget out")
			}
			if err == nil {
				b.Limit = int64(amount)
			}
			return err
		}, func() {})
	}
}

func (b *Budget) readWindow(r *document.Reader) {
	fixed, calendar := given(r, "window"), given(r, "period")
	if fixed && !calendar {
		b.Period, b.Zone = "", ""
	}
	if calendar && !fixed {
		b.WindowMicros = 0
	}
	if r.Node("period") != nil && !calendar {
		b.Period = ""
	} else {
		r.Choice("period", &b.Period, Day, Week, Month)
	}
	r.String("time_zone", &b.Zone)
	b.Zone = b.zone()
	r.Text("window", func(s string) error {
		length, err := window.ParseLength(s)
		if err == nil {
			b.WindowMicros = length
			return nil
		}
		if calendarWords[s] != "" {
			return fmt.Errorf("%s is a calendar period: write period: %s", document.Quote(s), calendarWords[s])
		}
		return fmt.Errorf("%w, is %s", errWindow, document.Quote(s))
	}, func() { b.WindowMicros = 0 })
	if (fixed || calendar) && b.Period == "" && b.WindowMicros == 0 {
		b.WindowMicros = window.MinLength // what is wrong is said: it is not missing
	}
}

func (b *Budget) readNarrowing(r *document.Reader) {
	model, provider := given(r, "model"), given(r, "provider")
	if model && !provider {
		b.Provider = ""
	}
	if provider && !model {
		b.Model = ""
	}
	r.String("model", &b.Model)
	r.String("provider", &b.Provider)
}

// readWarnings reads a list of percentages or a single one. Their order and
// repetitions mean nothing.
func (b *Budget) readWarnings(r *document.Reader) {
	n := r.Node("warn_percent")
	if n == nil {
		return
	}
	b.WarnPercent = nil
	items, path := []*document.Node{n}, func(int) string { return "warn_percent" }
	switch n.Kind {
	case document.Null:
		return
	case document.Array:
		items, path = n.Items, func(i int) string { return fmt.Sprintf("warn_percent[%d]", i) }
	default:
	}
	for i, item := range items {
		percent, err := strconv.ParseInt(item.Text, 10, 64)
		number := item.Kind == document.Number || item.Environment
		if !number || err != nil || strconv.FormatInt(percent, 10) != item.Text || percent < 1 || percent > MaxPercent {
			r.Fail(path(i), "must be a whole number from 1 to %d", MaxPercent)
			continue
		}
		b.WarnPercent = append(b.WarnPercent, percent)
	}
	slices.Sort(b.WarnPercent)
	b.WarnPercent = slices.Compact(b.WarnPercent)
}

// readEnforcement reads what happens at the end, in N's words or in A's.
func (b *Budget) readEnforcement(r *document.Reader) {
	enforced, exceeded := given(r, "enforcement"), given(r, "on_exceeded")
	r.Choice("enforcement", &b.Enforcement, Hard, Guard, Soft)
	action := ""
	r.Choice("on_exceeded", &action, block, record)
	switch {
	case enforced && exceeded:
		r.Fail("on_exceeded", "is another word for enforcement (%s is %s, %s is %s): leave one out", block, Guard, record, Soft)
	case exceeded && !b.perKey():
		r.Fail("on_exceeded", "is for budgets of scope key and plan: write enforcement: %s, %s or %s", Hard, Guard, Soft)
	case action == block:
		b.Enforcement = Guard
	case action == record:
		b.Enforcement = Soft
	}
	if n := r.Node("on_short"); n != nil {
		b.Shrink = nil
		word := ""
		if n.Kind != document.Null {
			r.Choice("on_short", &word, refuse, shrink)
		}
		if word != "" {
			shrinks := word == shrink
			b.Shrink = &shrinks
		}
	}
}

func (b *Budget) readCounting(r *document.Reader) {
	word := charge
	if b.SkipMissingUsage {
		word = skip
	}
	r.Choice("on_missing_usage", &word, charge, skip)
	b.SkipMissingUsage = word == skip
	cached := !b.Uncached
	r.Bool("count_cached", &cached)
	b.Uncached = !cached
	if n := r.Node("count_cached"); n != nil && n.Kind == document.Null {
		b.Uncached = false
	}
	word = now
	if b.CountFrom != "" {
		word = b.CountFrom
	}
	r.Choice("count_from", &word, now, WindowStart)
	b.CountFrom = ""
	if word != now {
		b.CountFrom = word
	}
}

// given reports whether the document has a field with a value.
func given(r *document.Reader, field string) bool {
	n := r.Node(field)
	return n != nil && n.Kind != document.Null
}

func words[T ~string](list []T) []string {
	all := make([]string, len(list))
	for i, word := range list {
		all[i] = string(word)
	}
	return all
}

// listed is "a, b or c".
func listed[T ~string](list []T) string {
	all := words(list)
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

type form struct {
	Owner       string          `json:"owner,omitempty"`
	System      bool            `json:"system,omitempty"`
	Scope       Scope           `json:"scope"`
	Subject     string          `json:"subject,omitempty"`
	Metric      string          `json:"metric"`
	Limit       json.RawMessage `json:"limit"`
	Period      string          `json:"period,omitempty"`
	Zone        string          `json:"time_zone,omitempty"`
	Window      string          `json:"window,omitempty"`
	Model       string          `json:"model,omitempty"`
	Provider    string          `json:"provider,omitempty"`
	WarnPercent []int64         `json:"warn_percent,omitempty"`
	Enforcement string          `json:"enforcement"`
	Missing     string          `json:"on_missing_usage,omitempty"`
	CountCached *bool           `json:"count_cached,omitempty"`
	Short       string          `json:"on_short,omitempty"`
	CountFrom   string          `json:"count_from,omitempty"`
}

// Encode writes a budget's JSON form, the same for equal ones.
func Encode(b *Budget) ([]byte, error) {
	f := form{
		Owner: b.Owner, System: b.System, Scope: b.Scope, Subject: b.Subject, Metric: b.Metric,
		Period: b.Period, Zone: b.zone(), Model: b.Model, Provider: b.Provider, WarnPercent: b.WarnPercent,
		Enforcement: b.Enforcement, CountFrom: b.CountFrom,
	}
	f.Limit = json.RawMessage(strconv.FormatInt(b.Limit, 10))
	if b.Metric == Spend {
		f.Limit = json.RawMessage(`"` + money.Nanos(b.Limit).String() + `"`)
	}
	if b.WindowMicros != 0 {
		f.Window = document.FormatDuration(b.WindowMicros)
	}
	if b.SkipMissingUsage {
		f.Missing = skip
	}
	if b.Uncached {
		f.CountCached = new(bool)
	}
	if b.Shrink != nil {
		f.Short = refuse
		if *b.Shrink {
			f.Short = shrink
		}
	}
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode a budget: %w", err)
	}
	return body, nil
}

// Decode reads what Encode wrote. ID, Name and Epoch are the caller's to set.
func Decode(body []byte) (*Budget, error) {
	b := &Budget{}
	n, err := document.ParseJSON(body)
	if err == nil {
		_, err = document.Read(n, func(r *document.Reader) {
			r.String("owner", &b.Owner)
			r.Bool("system", &b.System)
			b.Fields(r)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("decode a budget: %w", err)
	}
	return b, nil
}
