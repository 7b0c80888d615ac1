// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

// next is the edit that would make the object what the file declares; nil, with
// a problem, when it cannot be.
func (a *applier) next(ctx context.Context, h *home, d *Declared, now *store.Object) (*store.Edit, error) {
	edit := &store.Edit{Object: store.Object{
		Workspace: h.id, Kind: d.Kind, ID: now.ID, Name: d.Name, Body: d.Body, Source: SourceFile, Origin: a.origin(d),
	}}
	var err error
	switch d.Kind {
	case KindKey:
		var k *tenant.Key
		if k, err = a.key(h, d, now); err != nil || k == nil {
			return nil, err
		}
		if edit.AddSecret, edit.ExpireSecrets, err = a.secret(ctx, h, d, now, k); err != nil {
			return nil, err
		}
		h.know(KindKey, d.Name, now.ID)
		if err := a.planOf(ctx, h, d, k.Plan); err != nil {
			return nil, err
		}
		edit.Object.Body, err = tenant.EncodeKey(k)
	case KindProvider:
		edit.Credential, err = a.credential(ctx, d, now)
		h.provide(d.Name)
	case KindModel:
		var m *route.Model
		if m, err = route.DecodeModel(d.Body); err == nil {
			h.lead(d.Name, m)
		}
	case KindPlan:
		h.know(KindPlan, d.Name, now.ID)
		_, err = tenant.DecodePlan(d.Body)
	case KindBudget:
		err = a.budget(ctx, h, d, now, &edit.Object)
	case KindRateLimit:
		err = a.rule(ctx, h, d, now, &edit.Object)
	}
	return edit, err
}

// know notes a key or plan that will be there.
func (h *home) know(kind, name, id string) {
	if h.ids == nil {
		h.ids = map[[2]string]string{}
	}
	h.ids[[2]string{kind, name}] = id
}

// lead notes where the names of a model lead.
func (h *home) lead(name string, m *route.Model) {
	if h.models == nil {
		h.models = map[string]string{}
	}
	for _, alias := range m.Aliases {
		if h.models[alias] == "" {
			h.models[alias] = name
		}
	}
	h.models[name] = name
}

func (h *home) provide(name string) {
	if h.provided == nil {
		h.provided = map[string]bool{}
	}
	h.provided[name] = true
}

// key is a declared key with what it copies from the template, when its name is
// first seen, or has copied (SPEC KEY-4).
func (a *applier) key(h *home, d *Declared, now *store.Object) (*tenant.Key, error) {
	if h.workspace == nil {
		a.fail(d, "belongs to no workspace")
		return nil, nil //nolint:nilnil // the problem is noted
	}
	k, err := tenant.DecodeKey(d.Body)
	if err != nil {
		return nil, err
	}
	k.ID, k.Name = now.ID, d.Name
	if now.Version == 0 {
		zone, err := window.Zone(h.workspace.Zone)
		if err != nil {
			return nil, err
		}
		k.ApplyTemplate(h.workspace.KeyTemplate, d.Given, window.DayAt(a.at, zone).String())
	} else {
		previous, err := decodeKey(now)
		if err != nil {
			return nil, err
		}
		k.KeepCopies(previous, d.Given)
	}
	if d.Secret != nil {
		k.Prefix = d.Secret.Prefix
	}
	// A ceiling that falls below a copy later makes no key invalid (RUN-4).
	invalid := touched(k.Validate(h.workspace), d.Given)
	a.add(d, invalid)
	a.add(d, a.s.keepable(keyMoney(k)))
	return k, nil
}

// add notes what a check without lines found.
func (a *applier) add(d *Declared, err error) {
	var problems document.Problems
	switch {
	case err == nil:
	case errors.As(err, &problems):
		for _, p := range problems {
			a.fail(d, "%s", p.String())
		}
	default:
		a.fail(d, "%v", err)
	}
}

// secret is the new secret of a key, nil when it has the declared one. Another
// one under the same name is a rotation without grace.
func (a *applier) secret(ctx context.Context, h *home, d *Declared, now *store.Object, k *tenant.Key) (*store.KeySecret, *int64, error) {
	if d.Secret == nil {
		if now.Version == 0 {
			a.fail(d, "needs secret or secret_sha256")
		}
		return nil, nil, nil
	}
	known, err := a.s.Secrets.KeyBySecret(ctx, d.Secret.Hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, nil, err
	case known.Workspace != h.id || known.KeyID != k.ID:
		a.fail(d, "has a secret that belongs to %s: give it another, or say was: that key's name", a.owner(ctx, &known))
		return nil, nil, nil
	case known.NotAfter == 0:
		return nil, nil, nil
	}
	return &store.KeySecret{Hash: d.Secret.Hash, Workspace: h.id, KeyID: k.ID}, &a.at, nil
}

// owner names the key that a secret belongs to.
func (a *applier) owner(ctx context.Context, secret *store.KeySecret) string {
	object, err := a.s.Objects.Object(ctx, secret.Workspace, KindKey, secret.KeyID)
	if err != nil {
		return "key " + secret.KeyID
	}
	text := fmt.Sprintf("key %s of workspace %s", document.Quote(object.Name), secret.Workspace)
	switch {
	case object.RetiredAt > 0:
		return text + ", which is retired"
	case object.Source == SourceFile:
		return text + " (" + object.Origin + ")"
	default:
		return text + ", made through the API"
	}
}

// credential is a provider's new credential, nil when it has the declared one.
func (a *applier) credential(ctx context.Context, d *Declared, now *store.Object) (*string, error) {
	if now.Version > 0 {
		have, err := a.s.credential(ctx, now)
		if err != nil {
			return nil, err
		}
		if have == d.Credential {
			return nil, nil //nolint:nilnil // no change
		}
	} else if d.Credential == "" {
		return nil, nil //nolint:nilnil // no change
	}
	return &d.Credential, nil
}

// audit is the entry of one change. The values of a provider's headers may be
// secret: an audit says that they are there, not what they are (SPEC ADM-3).
func (a *applier) audit(o *store.Object, action string, before, after []byte, credential bool) (store.Audit, error) {
	entry := store.Audit{
		At: a.at, Workspace: o.Workspace, Actor: a.actor, Action: auditAction(o.Kind, action),
		Kind: o.Kind, ID: o.ID, Name: o.Name, Before: before, After: after,
	}
	if o.Kind != KindProvider {
		return entry, nil
	}
	var err error
	if entry.Before, err = hideHeaders(before, false); err != nil {
		return entry, err
	}
	entry.After, err = hideHeaders(after, credential)
	return entry, err
}

// auditAction is the name of a change by the file. Those of limits have the
// names that the API's have (SPEC ADM-3).
func auditAction(kind, action string) string {
	group, ok := map[string]string{
		KindWorkspace: "workspace", KindPlan: "plan", KindBudget: "models.budget", KindRateLimit: "models.rate_limit",
	}[kind]
	if !ok {
		return kind + "s." + action
	}
	if kind != KindWorkspace {
		switch action {
		case "change", "rename":
			action = "update"
		case "retire":
			action = "delete"
		case "revive":
			action = "create"
		}
	}
	return group + "." + action
}

func hideHeaders(body []byte, credential bool) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("write an audit entry: %w", err)
	}
	if headers, ok := fields["headers"]; ok {
		names := map[string]string{}
		if err := json.Unmarshal(headers, &names); err != nil {
			return nil, fmt.Errorf("write an audit entry: %w", err)
		}
		for name := range names {
			names[name] = "(hidden)"
		}
		fields["headers"], _ = json.Marshal(names) // a map of strings cannot fail
	}
	if credential {
		fields["credential"] = json.RawMessage(`"(changed)"`)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write an audit entry: %w", err)
	}
	return text, nil
}

// checkReferences holds every model that will be live to a provider that will
// be, and every name of a workspace to one meaning (SPEC KEY-5): a snapshot is
// made of all of them, so one that hangs in the air would stop every request.
func (a *applier) checkReferences(ctx context.Context) error {
	changed := map[objectRef]*store.Object{}
	gone := map[objectRef]bool{}
	for i := range a.edits {
		o := &a.edits[i].Object
		changed[objectRef{o.Workspace, o.Kind, o.ID}] = o
	}
	for i := range a.retires {
		o := &a.retires[i].Object
		gone[objectRef{o.Workspace, o.Kind, o.ID}] = true
	}
	for name, h := range a.homes {
		models, err := a.final(ctx, h, KindModel, changed, gone)
		if err != nil {
			return err
		}
		providers, err := a.final(ctx, h, KindProvider, changed, gone)
		if err != nil {
			return err
		}
		for i := range providers {
			h.provide(providers[i].Name)
		}
		if err := a.checkModels(name, h, models); err != nil {
			return err
		}
		if err := a.checkSet(ctx, name, h, changed, gone); err != nil {
			return err
		}
	}
	return nil
}

// final are a home's objects of a kind as they will be.
func (a *applier) final(ctx context.Context, h *home, kind string, changed map[objectRef]*store.Object, gone map[objectRef]bool) ([]store.Object, error) {
	var list []store.Object
	err := a.s.each(ctx, h.id, kind, func(o store.Object) error {
		ref := objectRef{o.Workspace, o.Kind, o.ID}
		if changed[ref] == nil && !gone[ref] {
			list = append(list, o)
		}
		return nil
	})
	for ref, o := range changed {
		if ref.workspace == h.id && ref.kind == kind {
			list = append(list, *o)
		}
	}
	return list, err
}

func (a *applier) checkModels(workspace string, h *home, models []store.Object) error {
	shared := a.homes[""]
	names := map[string]string{}
	for i := range models {
		o := &models[i]
		m, err := route.DecodeModel(o.Body)
		if err != nil {
			return fmt.Errorf("model %s: %w", o.Name, err)
		}
		d := &Declared{Kind: KindModel, Name: o.Name, Workspace: workspace, Line: lineOf(o.Origin)}
		inherits := h.workspace == nil || h.workspace.Inherit
		if known := h.provided[m.Provider] || inherits && shared.provided[m.Provider]; !known {
			a.fail(d, "needs the provider %s, which is not declared", document.Quote(m.Provider))
		}
		for _, name := range append([]string{o.Name}, m.Aliases...) {
			if other, taken := names[strings.ToLower(name)]; taken && other != o.ID {
				a.fail(d, "the name %s is taken by another model or alias, but for the case of letters at most", document.Quote(name))
			}
			names[strings.ToLower(name)] = o.ID
		}
	}
	return nil
}
