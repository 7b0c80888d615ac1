// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// Declared is one object that the configuration file declares.
type Declared struct {
	// Workspace is the name of the workspace that owns it; "" is shared by all.
	// A declared workspace is its own.
	Workspace string
	Kind      string // KindWorkspace or one of applied
	Name      string
	// OwnerKind and OwnerName are the key or plan that a budget is declared with:
	// its Name is one of its kind there. Empty: the workspace's own.
	OwnerKind, OwnerName string
	// Was is the name that it had before: a rename (SPEC STO-2).
	Was string
	// Body is the canonical JSON of the package that owns the kind.
	Body []byte
	// Given are the paths that the file gives of a key: what is not in it is
	// copied from the template when the key's name is first seen (SPEC KEY-4).
	Given map[string]bool
	// Secret is a key's; another one under the same name is a rotation.
	Secret *DeclaredSecret
	// Credential is a provider's; "" is none.
	Credential string
	Line       int

	// owner is the id of the one that owns it, plain the name that it has there:
	// Name is then the one among all of its workspace.
	owner, plain string
}

// DeclaredSecret is a key's secret, as much as is kept of it.
type DeclaredSecret struct {
	Hash   [32]byte
	Prefix string
}

// ApplyAnswer says what applying a file changed; each item is a kind and a name,
// with the workspace where it is not the default.
type ApplyAnswer struct {
	Created   []string `json:"created"`
	Changed   []string `json:"changed"`
	Renamed   []string `json:"renamed"`
	Rotated   []string `json:"rotated"`
	Revived   []string `json:"revived"`
	Retired   []string `json:"retired"`
	Unchanged int      `json:"unchanged"`
}

// Any reports whether anything changed.
func (a *ApplyAnswer) Any() bool {
	return len(a.Created)+len(a.Changed)+len(a.Renamed)+len(a.Rotated)+len(a.Revived)+len(a.Retired) > 0
}

// applied are the kinds that a file declares inside a workspace, in the order
// in which they need each other.
var applied = []string{KindProvider, KindModel, KindPlan, KindKey, KindBudget, KindRateLimit}

// Apply makes the store hold what the file declares, in one transaction: what is
// new, changed, renamed, gone or back (SPEC STO-2). Nothing is written when
// anything is wrong: the errors are document.Problems with the file's lines.
// When nothing differs nothing is written.
func (s *Service) Apply(ctx context.Context, actor string, declared []Declared, file string) (ApplyAnswer, error) {
	var err error
	found := ""
	for range maxAttempts {
		var out ApplyAnswer
		out, err = s.applyOnce(ctx, actor, declared, file)
		var problems document.Problems
		switch {
		case errors.Is(err, store.ErrConflict):
			found = ""
		case errors.As(err, &problems) && problems.Error() != found:
			// Another process may have written between two readings of the plan: a
			// problem that is one is found again.
			found = problems.Error()
		default:
			return out, err
		}
	}
	return ApplyAnswer{}, err
}

func (s *Service) applyOnce(ctx context.Context, actor string, declared []Declared, file string) (ApplyAnswer, error) {
	a := &applier{
		s: s, at: s.Clock.Now(), actor: actor, file: file, homes: map[string]*home{"": {}}, touched: map[objectRef]bool{},
		gives: map[[3]string]*Declared{}, guards: map[string]store.Edit{}, owners: map[string]string{},
		bounding: map[string]map[string][]store.Object{},
		out:      ApplyAnswer{Created: []string{}, Changed: []string{}, Renamed: []string{}, Rotated: []string{}, Revived: []string{}, Retired: []string{}},
	}
	// Before anything is read: whoever applies a file meanwhile makes this one's plan
	// a conflict, and it is made again.
	alone, err := s.guardEdit(ctx, "", fileID)
	if err != nil {
		return ApplyAnswer{}, fmt.Errorf("apply %s: %w", file, err)
	}
	if err := a.plan(ctx, declared); err != nil {
		return ApplyAnswer{}, fmt.Errorf("apply %s: %w", file, err)
	}
	if err := a.problems.Err(); err != nil {
		return ApplyAnswer{}, err
	}
	edits, err := a.ordered()
	if err != nil {
		return ApplyAnswer{}, err
	}
	if len(edits) > 0 {
		if err := s.change(ctx, a.at, append(a.guarded(edits), alone)); err != nil {
			return ApplyAnswer{}, fmt.Errorf("apply %s: %w", file, err)
		}
	}
	if err := s.seedDeclared(ctx, actor, slices.Collect(maps.Keys(a.guards))); err != nil {
		return a.out, fmt.Errorf("apply %s: %w", file, err)
	}
	return a.out, nil
}

// applier plans one Apply.
type applier struct {
	s           *Service
	at          int64
	actor, file string
	homes       map[string]*home // by workspace name; "" is what all share
	touched     map[objectRef]bool
	gives       map[[3]string]*Declared              // who gives a name up (was), by workspace, kind and name
	guards      map[string]store.Edit                // by workspace id
	owners      map[string]string                    // what owns budgets, by its id: for people
	bounding    map[string]map[string][]store.Object // by workspace: the API's limits, by the key or plan that they bound alone
	retires     []store.Edit
	edits       []planned
	problems    document.Problems
	out         ApplyAnswer
}

// home is a workspace that objects can be declared in.
type home struct {
	id        string
	workspace *tenant.Workspace // nil: shared
	// What the workspace will have when all is applied: providers by name, the
	// model that each name or alias leads to, and the ids of keys and plans by
	// kind and name.
	provided map[string]bool
	models   map[string]string
	ids      map[[2]string]string
	rules    int // that the file declares
	lastRule *Declared
}

type objectRef struct{ workspace, kind, id string }

// planned is an edit with the name that its object has now, "" when it is not
// live.
type planned struct {
	store.Edit
	now string
}

func (a *applier) fail(d *Declared, format string, args ...any) {
	path := d.Kind + " " + document.Quote(d.Name)
	if d.OwnerKind != "" {
		name := d.Name
		if d.plain != "" {
			name = d.plain
		}
		path = d.Kind + " " + document.Quote(name) + " of " + d.OwnerKind + " " + document.Quote(d.OwnerName)
	}
	a.problems = append(a.problems, document.Problem{Path: path, Line: d.Line, Text: fmt.Sprintf(format, args...)})
}

// origin is where a declared object stands.
func (a *applier) origin(d *Declared) string { return a.file + ":" + strconv.Itoa(d.Line) }

func (a *applier) plan(ctx context.Context, declared []Declared) error {
	once := a.once(declared)
	for _, d := range once {
		if d.Kind == KindWorkspace {
			if err := a.declareWorkspace(ctx, d); err != nil {
				return err
			}
		}
	}
	if err := a.defaultHome(ctx); err != nil {
		return err
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	for _, kind := range applied {
		for _, d := range a.ofKind(once, kind) {
			if err := a.declare(ctx, d); err != nil {
				return err
			}
		}
	}
	a.sameSecrets(declared)
	if err := a.retireGone(ctx); err != nil {
		return err
	}
	if err := a.checkReferences(ctx); err != nil {
		return err
	}
	return a.checkLimits(ctx)
}

// once are the declared objects less those that are declared twice.
func (a *applier) once(declared []Declared) []*Declared {
	seen := map[[4]string]*Declared{}
	list := make([]*Declared, 0, len(declared))
	for i := range declared {
		d := &declared[i]
		ref := [4]string{d.Workspace, d.Kind, d.OwnerKind + " " + d.OwnerName, d.Name}
		if other := seen[ref]; other != nil {
			a.fail(d, "is declared twice: at %s too", a.origin(other))
			continue
		}
		seen[ref] = d
		list = append(list, d)
	}
	return list
}

// ofKind are the declared objects of a kind under the names that they have in
// their workspace, by which renames find each other.
func (a *applier) ofKind(declared []*Declared, kind string) []*Declared {
	var list []*Declared
	for _, d := range declared {
		if d.Kind != kind {
			continue
		}
		if d.OwnerKind != "" {
			if d = a.owned(d); d == nil {
				continue
			}
		}
		if d.Was != "" {
			a.gives[[3]string{d.Workspace, d.Kind, d.Was}] = d
		}
		list = append(list, d)
	}
	return list
}

// declare plans one object inside a workspace, or a shared one.
func (a *applier) declare(ctx context.Context, d *Declared) error {
	h := a.homes[d.Workspace]
	if h == nil {
		a.fail(d, "belongs to workspace %s, which is not declared", document.Quote(d.Workspace))
		return nil
	}
	now, err := a.current(ctx, h.id, d)
	if err != nil || now == nil {
		return err
	}
	next, err := a.next(ctx, h, d, now)
	if err != nil || next == nil {
		return err
	}
	return a.settle(d, now, next)
}

// current is the object that a declaration stands for: the one of its name, the
// one that had the name which it gives up, one that comes back, or a new one
// without a version. It is nil, with a problem, when the API has the name.
func (a *applier) current(ctx context.Context, workspace string, d *Declared) (*store.Object, error) {
	found, err := a.named(ctx, workspace, d.Kind, d.Name)
	if err != nil {
		return nil, err
	}
	old, err := a.renames(ctx, workspace, d, nil)
	if err != nil {
		return nil, err
	}
	if old != nil {
		found = old
	}
	if found != nil && found.Source != SourceFile && found.RetiredAt > 0 {
		found = nil // deleted through the API: it does not come back
	}
	if found == nil {
		id, err := a.s.newID(idPrefix(d.Kind))
		return &store.Object{Workspace: workspace, Kind: d.Kind, ID: id}, err
	}
	if found.Source != SourceFile {
		a.fail(d, "is declared at %s and was made through the API too (%s): rename one, or delete the other", a.origin(d), found.ID)
		return nil, nil //nolint:nilnil // the problem is noted
	}
	a.touched[objectRef{found.Workspace, found.Kind, found.ID}] = true
	return found, nil
}

// renames returns the object that a declaration gives a new name; nil when the
// rename was made before, or was never due: its new name must be free, or be
// given up by a rename of its own. Names that go round in a circle are never
// due, for nothing would tell whether they have gone round already.
func (a *applier) renames(ctx context.Context, workspace string, d *Declared, above []*Declared) (*store.Object, error) {
	if d.Was == "" || slices.Contains(above, d) {
		return nil, nil //nolint:nilnil // no object is an answer
	}
	old, err := a.named(ctx, workspace, d.Kind, d.Was)
	if err != nil || old == nil || old.RetiredAt > 0 {
		return nil, err
	}
	now, err := a.named(ctx, workspace, d.Kind, d.Name)
	if err != nil || now == nil || now.RetiredAt > 0 {
		return old, err
	}
	next := a.gives[[3]string{d.Workspace, d.Kind, d.Name}]
	if next == nil {
		return nil, nil //nolint:nilnil // no object is an answer
	}
	if freed, err := a.renames(ctx, workspace, next, append(above, d)); err != nil || freed == nil {
		return nil, err
	}
	return old, nil
}

func (a *applier) named(ctx context.Context, workspace, kind, name string) (*store.Object, error) {
	object, err := a.s.Objects.ByName(ctx, workspace, kind, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // no object is an answer
	}
	return &object, err
}

// settle compares an object with what the file says of it, and plans the edit
// that makes them the same.
func (a *applier) settle(d *Declared, now *store.Object, next *store.Edit) error {
	next.Expect = now.Version
	live := now.Version > 0 && now.RetiredAt == 0
	same := live && now.Name == d.Name && string(now.Body) == string(next.Object.Body) && next.AddSecret == nil && next.Credential == nil
	if same && now.Origin == next.Object.Origin {
		a.out.Unchanged++
		return nil
	}
	edit := planned{Edit: *next}
	if live {
		edit.now = now.Name
	}
	label := a.label(&next.Object)
	action := "change"
	switch {
	case same:
		// It only moved to another line: nothing that an audit would tell.
		a.edits = append(a.edits, edit)
		a.out.Unchanged++
		return nil
	case now.Version == 0:
		action, a.out.Created = "create", append(a.out.Created, label)
	case !live:
		action, a.out.Revived = "revive", append(a.out.Revived, label)
	case now.Name != d.Name:
		action, a.out.Renamed = "rename", append(a.out.Renamed, label)
	case next.AddSecret != nil:
		action, a.out.Rotated = "rotate", append(a.out.Rotated, label)
	default:
		a.out.Changed = append(a.out.Changed, label)
	}
	var err error
	edit.Audit, err = a.audit(&next.Object, action, before(now), next.Object.Body, next.Credential != nil)
	a.edits = append(a.edits, edit)
	return err
}

// label names an object in the summary.
func (a *applier) label(o *store.Object) string {
	text := o.Kind + " " + a.shown(o)
	if o.Workspace != "" && o.Workspace != tenant.DefaultWorkspace && o.Kind != KindWorkspace {
		text += " (" + o.Workspace + ")"
	}
	return text
}

// sameSecrets refuses one secret in two places of the file.
func (a *applier) sameSecrets(declared []Declared) {
	first := map[[32]byte]*Declared{}
	for i := range declared {
		d := &declared[i]
		if d.Secret == nil {
			continue
		}
		if other := first[d.Secret.Hash]; other != nil {
			a.fail(d, "has the secret of key %s at %s: each key needs its own", document.Quote(other.Name), a.origin(other))
			continue
		}
		first[d.Secret.Hash] = d
	}
}

// retireGone plans the retirement of what an earlier file declared and this one
// does not.
func (a *applier) retireGone(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(a.homes)) {
		h := a.homes[name]
		for _, kind := range slices.Backward(applied) {
			err := a.s.each(ctx, h.id, kind, func(o store.Object) error {
				if o.Source != SourceFile || a.touched[objectRef{o.Workspace, o.Kind, o.ID}] {
					return nil
				}
				return a.retire(ctx, o)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) retire(ctx context.Context, o store.Object) error {
	if err := a.retireWith(ctx, &o); err != nil {
		return err
	}
	return a.retireAlone(o)
}

func (a *applier) retireAlone(o store.Object) error {
	audit, err := a.audit(&o, "retire", o.Body, nil, false)
	a.retires = append(a.retires, store.Edit{Object: o, Expect: o.Version, Retire: true, Audit: audit})
	a.out.Retired = append(a.out.Retired, a.label(&o))
	return err
}

// ordered puts retirements first and every rename after the edit that frees its
// name, so that no two live objects ever have one name.
func (a *applier) ordered() ([]store.Edit, error) {
	edits := a.retires
	held := map[[3]string]bool{}
	for i := range a.edits {
		if e := &a.edits[i]; e.now != "" {
			held[[3]string{e.Object.Workspace, e.Object.Kind, e.now}] = true
		}
	}
	left := a.edits
	for len(left) > 0 {
		var blocked []planned
		for _, e := range left {
			mine := [3]string{e.Object.Workspace, e.Object.Kind, e.now}
			if wanted := [3]string{e.Object.Workspace, e.Object.Kind, e.Object.Name}; wanted != mine && held[wanted] {
				blocked = append(blocked, e)
				continue
			}
			delete(held, mine)
			edits = append(edits, e.Edit)
		}
		if len(blocked) == len(left) {
			e := &blocked[0]
			return nil, document.Problems{{
				Path: e.Object.Kind + " " + document.Quote(e.Object.Name),
				Text: "names are exchanged in a circle (was): rename one of them in a step of its own",
			}}
		}
		left = blocked
	}
	return edits, nil
}
