// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/window"
)

// maxInstant is the last microsecond that RFC 3339 can write.
const maxInstant = 253402300799_999999

// maxZoneEpoch bounds a number that grows by one each time a zone changes.
const maxZoneEpoch = 1<<32 - 1

// Read reads a workspace as somebody declares it, over the values that
// w has: a field that is left out stays. It validates the result, and returns
// the paths that were given. Errors are document.Problems.
func (w *Workspace) Read(n *document.Node) (given map[string]bool, err error) {
	return document.Read(n, w.Fields)
}

// Fields reads the fields of a workspace out of a document that may have more,
// and validates them.
func (w *Workspace) Fields(r *document.Reader) {
	r.Choice("type", &w.Type, Personal, Enterprise)
	r.Choice("funds", &w.Funds, Open, Prepaid, PrepaidHold)
	credit := &w.CreditLine
	amount(r, "credit_line", &credit)
	w.CreditLine = 0
	if credit != nil {
		w.CreditLine = *credit
	}
	r.String("time_zone", &w.Zone)
	readLimits(r, "limits", &w.Limits)
	r.Object("type_defaults", func(r *document.Reader) { w.readDefaults(r) })
	w.readTemplate(r)
	w.readRefusal(r)
	r.Bool("hide_amounts", &w.HideAmounts)
	r.Int("hold_output_tokens", &w.HoldOutputTokens, 0, MaxTokens)
	r.Choice("on_short", &w.OnShort, Refuse, Shrink)
	r.Int("shrink_floor", &w.ShrinkFloor, 1, MaxTokens)
	r.Int("max_users", &w.MaxUsers, 1, MaxUsersBound)
	r.Later("cache", "remote_rate_limit", "webhooks")
	r.Add(w.Validate())
}

func (w *Workspace) readDefaults(r *document.Reader) {
	w.TypeDefaults = map[string]RuntimeLimits{}
	for _, kind := range []string{Personal, Enterprise} {
		if n := r.Node(kind); n == nil || n.Kind == document.Null {
			continue
		}
		var limits RuntimeLimits
		readLimits(r, kind, &limits)
		w.TypeDefaults[kind] = limits
	}
}

func (w *Workspace) readTemplate(r *document.Reader) {
	if n := r.Node("key_template"); n != nil && n.Kind == document.Null {
		w.KeyTemplate = nil
	}
	r.Object("key_template", func(r *document.Reader) {
		var t Template
		t.shape().read(r)
		r.Refuse("a template has no budgets: a budget of the workspace with scope: key and no subject counts each key for itself", "budgets")
		w.KeyTemplate = &t
	})
}

func (w *Workspace) readRefusal(r *document.Reader) {
	status := int64(w.BudgetRefusal)
	r.Int("budget_refusal", &status, 402, 429)
	w.BudgetRefusal = int(status)
}

// Validate tells everything that is wrong with a workspace, as
// document.Problems whose paths are those of its JSON form.
func (w *Workspace) Validate() error {
	var problems document.Problems
	if w.Name != "" {
		if err := ValidWorkspaceName(w.Name); err != nil {
			problems.Add("name", "%v", err)
		}
	}
	if w.Type != Personal && w.Type != Enterprise {
		problems.Add("type", "must be %s or %s", Personal, Enterprise)
	}
	if w.Funds != Open && w.Funds != Prepaid && w.Funds != PrepaidHold {
		problems.Add("funds", "must be %s, %s or %s", Open, Prepaid, PrepaidHold)
	}
	if w.CreditLine < 0 || w.CreditLine > money.MaxAmount {
		problems.Add("credit_line", "must be from 0 to %s dollars", money.MaxAmount)
	}
	if w.CreditLine > 0 && w.Type == Personal {
		problems.Add("credit_line", "only a workspace of type enterprise has one: leave it out, or change the type")
	}
	if _, err := window.Zone(w.Zone); err != nil {
		problems.Add("time_zone", "%v", err)
	}
	if w.BudgetRefusal != 402 && w.BudgetRefusal != 429 {
		problems.Add("budget_refusal", "must be 402 or 429")
	}
	w.checkHolds(&problems)
	w.Limits.check("limits", &problems)
	for _, kind := range []string{Personal, Enterprise} {
		defaults := w.TypeDefaults[kind]
		defaults.check("type_defaults."+kind, &problems)
	}
	if t := w.KeyTemplate; t != nil {
		var below document.Problems
		t.shape().check(w, &below)
		for _, p := range below {
			problems.Add(document.Join("key_template", p.Path), "%s", p.Text)
		}
	}
	return problems.Err()
}

// checkHolds checks what budgets hold, and how many users there may be (SPEC
// BUD-10, KEY-7).
func (w *Workspace) checkHolds(problems *document.Problems) {
	if w.HoldOutputTokens < 0 || w.HoldOutputTokens > MaxTokens {
		problems.Add("hold_output_tokens", "must be from 0 to %d", int64(MaxTokens))
	}
	if w.OnShort != Refuse && w.OnShort != Shrink {
		problems.Add("on_short", "must be %s or %s", Refuse, Shrink)
	}
	if w.ShrinkFloor < 1 || w.ShrinkFloor > MaxTokens {
		problems.Add("shrink_floor", "must be from 1 to %d", int64(MaxTokens))
	}
	if w.MaxUsers < 1 || w.MaxUsers > MaxUsersBound {
		problems.Add("max_users", "must be from 1 to %d", int64(MaxUsersBound))
	}
}

// Read reads a key as somebody declares or changes it, over the values that
// k has: a field that is left out stays, a null clears it. It returns the paths
// that were given, nulls included, which ApplyTemplate takes as explicit; a
// copy from the template that is overwritten is no copy any more. It does not
// validate: that needs the workspace.
func (k *Key) Read(n *document.Node) (given map[string]bool, err error) {
	given, err = document.Read(n, k.Fields)
	for path := range given {
		delete(k.FromTemplate, path)
	}
	return given, err
}

// Fields reads the fields of a key out of a document that may have more.
func (k *Key) Fields(r *document.Reader) {
	k.shape().read(r)
	r.String("user", &k.User)
	r.Bool("disabled", &k.Disabled)
	r.Text("expires_at", func(s string) error {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return fmt.Errorf("must be an instant such as 2027-01-31T00:00:00Z, is %s", document.Quote(s))
		}
		if k.ExpiresAt = at.UnixMicro(); k.ExpiresAt <= 0 {
			return fmt.Errorf("%s is before 1970", document.Quote(s))
		}
		return nil
	}, func() { k.ExpiresAt = 0 })
}

// DecodeWorkspace reads what EncodeWorkspace wrote. ID and Name are the
// caller's to set.
func DecodeWorkspace(body []byte) (*Workspace, error) {
	w := NewWorkspace("", "")
	n, err := document.ParseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("decode a workspace: %w", err)
	}
	_, err = document.Read(n, func(r *document.Reader) {
		epoch := int64(0)
		r.Int("zone_epoch", &epoch, 0, maxZoneEpoch)
		w.ZoneEpoch = uint32(epoch)
		r.Bool("inherit", &w.Inherit)
		w.Fields(r)
	})
	if err != nil {
		return nil, fmt.Errorf("decode a workspace: %w", err)
	}
	return w, nil
}

// DecodeKey reads what EncodeKey wrote. ID and Name are the caller's to set. A
// stored key is not validated again: its workspace's limits may have fallen
// below its own since (SPEC RUN-4).
func DecodeKey(body []byte) (*Key, error) {
	k := &Key{}
	n, err := document.ParseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("decode a key: %w", err)
	}
	_, err = document.Read(n, func(r *document.Reader) {
		r.String("prefix", &k.Prefix)
		r.Map("from_template", &k.FromTemplate, len(k.shape().fields()))
		k.Fields(r)
	})
	if err != nil {
		return nil, fmt.Errorf("decode a key: %w", err)
	}
	return k, nil
}

type limitsForm struct {
	RPM         *int64 `json:"rpm,omitempty"`
	TPM         *int64 `json:"tpm,omitempty"`
	Concurrency *int64 `json:"concurrency,omitempty"`
	CountCached *bool  `json:"count_cached,omitempty"`
}

type capsForm struct {
	Day       string `json:"day,omitempty"`
	SevenDay  string `json:"seven_day,omitempty"`
	ThirtyDay string `json:"thirty_day,omitempty"`
}

// shapeForm is the JSON form of what keys and templates have in common.
type shapeForm struct {
	Team            string      `json:"team,omitempty"`
	Project         string      `json:"project,omitempty"`
	Plan            string      `json:"plan,omitempty"`
	AllowedModels   *[]string   `json:"allowed_models,omitempty"`
	MaxOutputTokens *int64      `json:"max_output_tokens,omitempty"`
	Caps            *capsForm   `json:"caps,omitempty"`
	Limits          *limitsForm `json:"limits,omitempty"`
	AttributeUsers  string      `json:"attribute_users,omitempty"`
	RequireUser     bool        `json:"require_user,omitempty"`
}

type keyForm struct {
	Prefix string `json:"prefix,omitempty"`
	User   string `json:"user,omitempty"`
	shapeForm
	Disabled     bool              `json:"disabled,omitempty"`
	ExpiresAt    string            `json:"expires_at,omitempty"`
	FromTemplate map[string]string `json:"from_template,omitempty"`
}

type workspaceForm struct {
	Type          string                 `json:"type"`
	Funds         string                 `json:"funds"`
	CreditLine    string                 `json:"credit_line,omitempty"`
	Zone          string                 `json:"time_zone,omitempty"`
	ZoneEpoch     uint32                 `json:"zone_epoch,omitempty"`
	Limits        *limitsForm            `json:"limits,omitempty"`
	TypeDefaults  map[string]*limitsForm `json:"type_defaults,omitempty"`
	KeyTemplate   *shapeForm             `json:"key_template,omitempty"`
	BudgetRefusal int                    `json:"budget_refusal"`
	HideAmounts   bool                   `json:"hide_amounts,omitempty"`
	HoldOutput    int64                  `json:"hold_output_tokens,omitempty"`
	OnShort       string                 `json:"on_short,omitempty"`     // absent: Refuse
	ShrinkFloor   int64                  `json:"shrink_floor,omitempty"` // absent: the default
	MaxUsers      int64                  `json:"max_users,omitempty"`    // absent: the default
	Inherit       bool                   `json:"inherit"`
}

// EncodeWorkspace writes a workspace's JSON form, the same for equal ones.
func EncodeWorkspace(w *Workspace) ([]byte, error) {
	form := workspaceForm{
		Type: w.Type, Funds: w.Funds, CreditLine: decimal(&w.CreditLine), Zone: w.Zone, ZoneEpoch: w.ZoneEpoch,
		Limits: w.Limits.form(), BudgetRefusal: w.BudgetRefusal, HideAmounts: w.HideAmounts, Inherit: w.Inherit,
		HoldOutput: w.HoldOutputTokens, OnShort: unless(w.OnShort, Refuse),
		ShrinkFloor: unless(w.ShrinkFloor, DefaultShrinkFloor), MaxUsers: unless(w.MaxUsers, DefaultMaxUsers),
	}
	if w.CreditLine == 0 {
		form.CreditLine = ""
	}
	for kind, limits := range w.TypeDefaults {
		if limits == (RuntimeLimits{}) {
			continue
		}
		if form.TypeDefaults == nil {
			form.TypeDefaults = map[string]*limitsForm{}
		}
		form.TypeDefaults[kind] = limits.form()
	}
	if w.KeyTemplate != nil {
		template := w.KeyTemplate.shape().form()
		form.KeyTemplate = &template
	}
	return encodeForm("a workspace", form)
}

// unless is a value, or nothing where it is the default: so a workspace that was
// stored before a field existed has the same form as one that leaves it out.
func unless[T comparable](value, standard T) T {
	if value == standard {
		var none T
		return none
	}
	return value
}

// EncodeKey writes a key's JSON form, the same for equal ones.
func EncodeKey(k *Key) ([]byte, error) {
	form := keyForm{Prefix: k.Prefix, User: k.User, shapeForm: k.shape().form(), Disabled: k.Disabled, FromTemplate: k.FromTemplate}
	if k.ExpiresAt != 0 {
		form.ExpiresAt = time.UnixMicro(k.ExpiresAt).UTC().Format(time.RFC3339Nano)
	}
	return encodeForm("a key", form)
}

func encodeForm(what string, form any) ([]byte, error) {
	body, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", what, err)
	}
	return body, nil
}

func (s shape) form() shapeForm {
	form := shapeForm{
		Team: *s.team, Project: *s.project, Plan: *s.plan,
		AllowedModels: *s.allowedModels, MaxOutputTokens: *s.maxOutputTokens, Limits: s.limits.form(),
		AttributeUsers: *s.attributeUsers, RequireUser: *s.requireUser,
	}
	if *s.caps != (Caps{}) {
		form.Caps = &capsForm{Day: decimal(s.caps.Day), SevenDay: decimal(s.caps.SevenDay), ThirtyDay: decimal(s.caps.ThirtyDay)}
	}
	return form
}

func (l RuntimeLimits) form() *limitsForm {
	if l == (RuntimeLimits{}) {
		return nil
	}
	return &limitsForm{RPM: l.RPM, TPM: l.TPM, Concurrency: l.Concurrency, CountCached: l.CountCached}
}

func decimal(n *money.Nanos) string {
	if n == nil {
		return ""
	}
	return n.String()
}
