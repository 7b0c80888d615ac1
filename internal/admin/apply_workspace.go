// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// declareWorkspace plans a workspace and the shared entry by which it is found.
func (a *applier) declareWorkspace(ctx context.Context, d *Declared) error {
	next, err := tenant.DecodeWorkspace(d.Body)
	if err != nil {
		return err
	}
	next.Name = d.Name
	a.add(d, next.Validate())
	a.add(d, a.s.keepable(workspaceMoney(next)))
	entry, now, err := a.known(ctx, d)
	if err != nil {
		return err
	}
	if now.Version > 0 {
		previous, err := decodeWorkspace(*now)
		if err != nil {
			return err
		}
		next.Adopt(previous)
	}
	next.ID = now.ID
	a.homes[d.Name] = &home{id: now.ID, workspace: next}
	a.touched[objectRef{now.ID, KindWorkspace, now.ID}] = true
	return a.putWorkspace(d, entry, now, next)
}

// known is a workspace and its entry as they are; new ones have an id and no
// version.
func (a *applier) known(ctx context.Context, d *Declared) (entry, now *store.Object, err error) {
	if entry, err = a.entryOf(ctx, d); err != nil {
		return nil, nil, err
	}
	if entry != nil {
		found, err := a.s.Objects.Object(ctx, entry.ID, KindWorkspace, entry.ID)
		return entry, &found, err
	}
	id, err := a.s.newWorkspaceID(ctx, d.Name)
	return &store.Object{Kind: kindWorkspaceName, ID: id}, &store.Object{Workspace: id, Kind: KindWorkspace, ID: id}, err
}

// entryOf finds the entry of a workspace by its name, or by the one it had. The
// default one may have been made before there was a file: the file takes it over.
func (a *applier) entryOf(ctx context.Context, d *Declared) (*store.Object, error) {
	entry, err := a.named(ctx, "", kindWorkspaceName, d.Name)
	if err != nil || entry != nil && (entry.RetiredAt == 0 || d.Was == "") {
		return entry, err
	}
	if d.Was == "" {
		return nil, nil //nolint:nilnil // a new one
	}
	was, err := a.named(ctx, "", kindWorkspaceName, d.Was)
	if err != nil || was == nil || was.RetiredAt > 0 {
		return entry, err
	}
	return was, nil
}

func (a *applier) putWorkspace(d *Declared, entry, now *store.Object, next *tenant.Workspace) error {
	body, err := tenant.EncodeWorkspace(next)
	if err != nil {
		return err
	}
	object := store.Object{
		Workspace: next.ID, Kind: KindWorkspace, ID: next.ID, Name: d.Name, Body: body, Epoch: next.ZoneEpoch,
		Source: SourceFile, Origin: a.origin(d),
	}
	if entry.Version == 0 || entry.RetiredAt > 0 || entry.Name != d.Name {
		edit := planned{Edit: store.Edit{Object: nameEntry(&object), Expect: entry.Version}}
		if entry.Version > 0 && entry.RetiredAt == 0 {
			edit.now = entry.Name
		}
		a.edits = append(a.edits, edit)
	}
	return a.settle(d, now, &store.Edit{Object: object})
}

// defaultHome makes the default workspace when neither file nor store has one,
// and finds the homes of the workspaces that the file does not declare.
func (a *applier) defaultHome(ctx context.Context) error {
	declared := map[string]bool{}
	for _, h := range a.homes {
		declared[h.id] = true
	}
	err := a.s.each(ctx, "", kindWorkspaceName, func(entry store.Object) error {
		if declared[entry.ID] {
			return nil
		}
		return a.undeclared(ctx, entry)
	})
	if err != nil || a.homes[tenant.DefaultWorkspace] != nil {
		return err
	}
	edits, err := defaultWorkspace(a.at, a.actor)
	if err != nil {
		return err
	}
	for i := range edits {
		a.edits = append(a.edits, planned{Edit: edits[i]})
	}
	name := tenant.DefaultWorkspace
	a.homes[name] = &home{id: name, workspace: tenant.NewWorkspace(name, name)}
	return nil
}

// undeclared plans what becomes of a workspace that the file does not declare:
// one that an earlier file did is retired with its keys; others stay.
func (a *applier) undeclared(ctx context.Context, entry store.Object) error {
	object, err := a.s.Objects.Object(ctx, entry.ID, KindWorkspace, entry.ID)
	if err != nil {
		return err
	}
	w, err := decodeWorkspace(object)
	if err != nil {
		return err
	}
	a.homes[entry.Name] = &home{id: entry.ID, workspace: w}
	if object.Source != SourceFile {
		return nil
	}
	if entry.Name == tenant.DefaultWorkspace {
		return a.release(object)
	}
	// Without its object a workspace would have no limits: nothing that was made
	// through the API may be left in it.
	d := &Declared{Kind: KindWorkspace, Name: entry.Name}
	for _, kind := range applied {
		err = a.s.each(ctx, entry.ID, kind, func(o store.Object) error {
			if o.Source != SourceFile {
				a.fail(d, "left the file, and its %s %s was made through the API: delete that first, or declare the workspace again", kind, document.Quote(o.Name))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := a.retireAlone(object); err != nil {
		return err
	}
	a.retires = append(a.retires, store.Edit{Object: entry, Expect: entry.Version, Retire: true})
	return nil
}

// release gives the default workspace, which is always there, back to the API.
func (a *applier) release(object store.Object) error {
	audit, err := a.audit(&object, "release", nil, nil, false)
	expect, now := object.Version, object.Name
	object.Source, object.Origin = SourceAPI, ""
	a.edits = append(a.edits, planned{Edit: store.Edit{Object: object, Expect: expect, Audit: audit}, now: now})
	a.out.Changed = append(a.out.Changed, a.label(&object))
	return err
}

// lineOf is the line of an origin, 0 when it has none.
func lineOf(origin string) int {
	line, err := strconv.Atoi(origin[strings.LastIndexByte(origin, ':')+1:])
	if err != nil {
		return 0
	}
	return line
}
