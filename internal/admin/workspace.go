// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// The kinds of objects. A workspace's object lies in the workspace itself; its
// name is found by a shared object of kind workspace_name with the same id.
const (
	KindWorkspace = tenant.KindWorkspace
	KindKey       = tenant.KindKey
	KindProvider  = route.KindProvider
	KindModel     = route.KindModel

	kindWorkspaceName = "workspace_name"
	kindIdempotency   = "idempotency"
)

// The sources of an object.
const (
	SourceAPI  = "api"
	SourceFile = "file"
)

// workspaceNamed finds a live workspace by its name.
func (s *Service) workspaceNamed(ctx context.Context, name string) (store.Object, error) {
	entry, err := s.Objects.ByName(ctx, "", kindWorkspaceName, name)
	if err != nil {
		return store.Object{}, err
	}
	object, err := s.Objects.Object(ctx, entry.ID, KindWorkspace, entry.ID)
	if err == nil && (entry.RetiredAt > 0 || object.RetiredAt > 0) {
		return store.Object{}, fmt.Errorf("workspace %q is retired: %w", name, store.ErrNotFound)
	}
	return object, err
}

// newWorkspaceID is the name of a new workspace, or something like it when an
// older one that was renamed has that id.
func (s *Service) newWorkspaceID(ctx context.Context, name string) (string, error) {
	id := name
	for n := 2; ; n++ {
		_, err := s.Objects.Object(ctx, id, KindWorkspace, id)
		if errors.Is(err, store.ErrNotFound) {
			return id, nil
		}
		if err != nil {
			return "", err
		}
		id = name + "~" + strconv.Itoa(n)
	}
}

// EnsureDefault makes the default workspace when there is none: a first start
// without a file.
func (s *Service) EnsureDefault(ctx context.Context) error {
	_, err := s.workspaceNamed(ctx, tenant.DefaultWorkspace)
	if !errors.Is(err, store.ErrNotFound) {
		return answer(err)
	}
	edits, err := defaultWorkspace(s.Clock.Now(), "weir")
	if err != nil {
		return answer(err)
	}
	err = s.change(ctx, s.Clock.Now(), edits)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process made it
	}
	return answer(err)
}

func defaultWorkspace(at int64, actor string) ([]store.Edit, error) {
	name := tenant.DefaultWorkspace
	body, err := tenant.EncodeWorkspace(tenant.NewWorkspace(name, name))
	if err != nil {
		return nil, err
	}
	object := store.Object{Workspace: name, Kind: KindWorkspace, ID: name, Name: name, Body: body, Source: SourceAPI}
	return []store.Edit{
		{Object: nameEntry(&object)},
		{Object: object, Audit: store.Audit{
			At: at, Workspace: name, Actor: actor, Action: "workspace.create", Kind: KindWorkspace, ID: name, Name: name, After: body,
		}},
	}, nil
}

// nameEntry is the shared object by which a workspace is found.
func nameEntry(w *store.Object) store.Object {
	return store.Object{Kind: kindWorkspaceName, ID: w.ID, Name: w.Name, Body: []byte("{}"), Source: w.Source, Origin: w.Origin}
}

func decodeWorkspace(o store.Object) (*tenant.Workspace, error) {
	w, err := tenant.DecodeWorkspace(o.Body)
	if err != nil {
		return nil, fmt.Errorf("read workspace %s: %w", o.ID, err)
	}
	w.ID, w.Name, w.ZoneEpoch = o.ID, o.Name, max(w.ZoneEpoch, o.Epoch)
	return w, nil
}

// WorkspaceShow is the actor's workspace.
func (s *Service) WorkspaceShow(ctx context.Context, a Actor, _ WorkspaceRequest) (WorkspaceAnswer, error) {
	c, err := s.enter(ctx, a, OpWorkspaceShow)
	if err != nil {
		return WorkspaceAnswer{}, err
	}
	return viewWorkspace(&c.object, c.workspace), nil
}

// WorkspaceList is one page of all workspaces.
func (s *Service) WorkspaceList(ctx context.Context, a Actor, r WorkspaceListRequest) (WorkspaceListAnswer, error) {
	out := WorkspaceListAnswer{Workspaces: []WorkspaceAnswer{}}
	if err := permit(a, OpWorkspaceList); err != nil {
		return out, err
	}
	size, err := pageSize(r.Limit)
	if err != nil {
		return out, err
	}
	after, err := placeOf(r.Cursor)
	if err != nil {
		return out, err
	}
	names, err := s.Objects.List(ctx, "", kindWorkspaceName, after, size+1)
	if err != nil {
		return out, answer(err)
	}
	names, out.NextCursor = trim(names, size, func(o store.Object) string { return o.Name })
	for i := range names {
		object, err := s.Objects.Object(ctx, names[i].ID, KindWorkspace, names[i].ID)
		if err != nil {
			return out, answer(err)
		}
		w, err := decodeWorkspace(object)
		if err != nil {
			return out, answer(err)
		}
		out.Workspaces = append(out.Workspaces, viewWorkspace(&object, w))
	}
	return out, nil
}

// WorkspaceUpdate changes the workspace. A new zone starts a new epoch, so that
// days of one zone are never added to those of another (SPEC CAP-3).
func (s *Service) WorkspaceUpdate(ctx context.Context, a Actor, r WorkspaceUpdateRequest) (WorkspaceAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return WorkspaceAnswer{}, err
	}
	return repeat(func() (WorkspaceAnswer, error) {
		c, err := s.enter(ctx, a, OpWorkspaceUpdate)
		if err != nil {
			return WorkspaceAnswer{}, err
		}
		if err := declaredInFile(&c.object); err != nil {
			return WorkspaceAnswer{}, err
		}
		next, err := decodeWorkspace(c.object)
		if err != nil {
			return WorkspaceAnswer{}, err
		}
		given, err := next.Read(n)
		if err != nil {
			return WorkspaceAnswer{}, invalid(err)
		}
		if t := next.KeyTemplate; t != nil && given["key_template"] {
			if err := s.planNamed(ctx, c, t.Plan, "key_template.plan"); err != nil {
				return WorkspaceAnswer{}, err
			}
		}
		next.Adopt(c.workspace)
		if err := s.keepable(workspaceMoney(next)); err != nil {
			return WorkspaceAnswer{}, invalid(err)
		}
		return s.putWorkspace(ctx, c, next)
	})
}

func (s *Service) putWorkspace(ctx context.Context, c *scope, next *tenant.Workspace) (WorkspaceAnswer, error) {
	body, err := tenant.EncodeWorkspace(next)
	if err != nil {
		return WorkspaceAnswer{}, err
	}
	if bytes.Equal(body, c.object.Body) {
		return viewWorkspace(&c.object, next), nil
	}
	object := c.object
	object.Body, object.Epoch = body, next.ZoneEpoch
	edit := store.Edit{Object: object, Expect: c.object.Version, Audit: c.audit(&object, c.object.Body, body)}
	if err := s.change(ctx, c.at, append(c.guard, edit)); err != nil {
		return WorkspaceAnswer{}, err
	}
	object.Version, object.UpdatedAt = object.Version+1, c.at
	return viewWorkspace(&object, next), nil
}

// declaredInFile refuses to change what the file declares (SPEC STO-2, ADM-5).
func declaredInFile(o *store.Object) error {
	if o.Source != SourceFile {
		return nil
	}
	return fault.New(fault.DeclaredInFile, "%s %s is declared at %s: change it there", o.Kind, document.Quote(o.Name), o.Origin)
}

// keepable refuses limits on money where nothing is kept (SPEC BUD-6): a
// restart would forget what was spent.
func (s *Service) keepable(money []string) error {
	if s.Durable || len(money) == 0 {
		return nil
	}
	var problems document.Problems
	for _, path := range money {
		problems.Add(path, "cannot be held with a store that keeps nothing: use sqlite or postgres")
	}
	return problems.Err()
}

// workspaceMoney names what of a workspace would be lost with its store.
func workspaceMoney(w *tenant.Workspace) []string {
	var paths []string
	if w.Funds != tenant.Open {
		paths = append(paths, "funds")
	}
	if w.KeyTemplate != nil && w.KeyTemplate.Caps.Any() {
		paths = append(paths, "key_template.caps")
	}
	return paths
}

func keyMoney(k *tenant.Key) []string {
	if k.Caps.Any() {
		return []string{"caps"}
	}
	return nil
}

func viewWorkspace(o *store.Object, w *tenant.Workspace) WorkspaceAnswer {
	out := WorkspaceAnswer{
		ID: o.ID, Name: o.Name, Type: w.Type, Funds: w.Funds, CreditLine: w.CreditLine.String(), TimeZone: w.Zone,
		BudgetRefusal: w.BudgetRefusal, HideAmounts: w.HideAmounts, HoldOutput: w.HoldOutputTokens,
		OnShort: w.OnShort, ShrinkFloor: w.ShrinkFloor, MaxUsers: w.MaxUsers, Source: o.Source, Origin: o.Origin,
		Version: o.Version, CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	if out.TimeZone == "" {
		out.TimeZone = "UTC"
	}
	for _, m := range tenant.Metrics() {
		amount, origin := w.Layer(m)
		out.Limits = append(out.Limits, EffectiveLimit{Metric: string(m), Amount: amount, Origin: origin})
	}
	for kind, limits := range w.TypeDefaults {
		if out.TypeDefaults == nil {
			out.TypeDefaults = map[string]RunValues{}
		}
		out.TypeDefaults[kind] = RunValues(limits)
	}
	if t := w.KeyTemplate; t != nil {
		out.KeyTemplate = &TemplateValues{
			Team: t.Team, Project: t.Project, Plan: t.Plan, AttributeUsers: t.AttributeUsers, RequireUser: t.RequireUser, AllowedModels: t.AllowedModels, MaxOutputTokens: t.MaxOutputTokens,
			Caps: viewCaps(t.Caps), Limits: RunValues(t.Limits),
		}
	}
	return out
}

func viewCaps(c tenant.Caps) CapValues {
	return CapValues{Day: dollars(c.Day), SevenDay: dollars(c.SevenDay), ThirtyDay: dollars(c.ThirtyDay)}
}

func dollars(n *money.Nanos) string {
	if n == nil {
		return ""
	}
	return n.String()
}
