// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// The kinds of limits that are objects of their own.
const (
	KindPlan      = tenant.KindPlan
	KindBudget    = budget.KindBudget
	KindRateLimit = rule.KindRule
)

// words are what people call the kinds.
var words = map[string]string{KindPlan: "plan", KindBudget: "budget", KindRateLimit: "rate limit", KindKey: "key"}

// idPrefix begins the ids of a kind's objects: key_, pla_, bud_, rat_.
func idPrefix(kind string) string { return kind[:3] + "_" }

// find finds an object of the workspace by id, else by name; retired ones too. A
// name among all budgets is one that no key or plan owns.
func (s *Service) find(ctx context.Context, c *scope, kind, ref string) (store.Object, error) {
	object, err := s.Objects.Object(ctx, c.object.ID, kind, ref)
	if errors.Is(err, store.ErrNotFound) {
		object, err = s.Objects.ByName(ctx, c.object.ID, kind, ref)
	}
	if errors.Is(err, store.ErrNotFound) && kind == KindBudget {
		object, err = s.budgetNamed(ctx, c, ref)
	}
	if errors.Is(err, store.ErrNotFound) {
		err = fault.New(fault.NotFound, "there is no such %s in workspace %s", words[kind], c.workspace.Name)
	}
	return object, err
}

// budgetNamed finds a budget of a key or plan by its own name, when no other
// has it.
func (s *Service) budgetNamed(ctx context.Context, c *scope, name string) (store.Object, error) {
	var found store.Object
	err := s.each(ctx, c.object.ID, KindBudget, func(o store.Object) error {
		b, err := decodeBudget(&o)
		switch {
		case err != nil:
			return err
		case b.Name != name:
			return nil
		case found.ID != "":
			return fault.New(fault.Conflict, "several budgets are named %s: say which by its id, %s or %s", document.Quote(name), found.ID, o.ID)
		}
		found = o
		return nil
	})
	if err == nil && found.ID == "" {
		err = store.ErrNotFound
	}
	return found, err
}

// live is find without those that are retired.
func (s *Service) live(ctx context.Context, c *scope, kind, ref string) (store.Object, error) {
	object, err := s.find(ctx, c, kind, ref)
	if err == nil && object.RetiredAt > 0 {
		err = fault.New(fault.NotFound, "%s %s is deleted", words[kind], object.ID)
	}
	return object, err
}

// changeable is live without those that the file declares.
func (s *Service) changeable(ctx context.Context, c *scope, kind, ref string) (store.Object, error) {
	object, err := s.live(ctx, c, kind, ref)
	if err == nil {
		err = declaredInFile(&object)
	}
	return object, err
}

// nameFree refuses a name that another live object of the kind has.
func (s *Service) nameFree(ctx context.Context, c *scope, kind, name, self string) error {
	other, err := s.Objects.ByName(ctx, c.object.ID, kind, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case other.RetiredAt > 0 || other.ID == self:
		return nil
	case other.Source == SourceFile:
		return fault.New(fault.Conflict, "the name %s is taken by the %s that is declared at %s", document.Quote(name), words[kind], other.Origin)
	default:
		return fault.New(fault.Conflict, "the name %s is taken by %s %s", document.Quote(name), words[kind], other.ID)
	}
}

// made is the answer to what was written: replayed when its Idempotency-Key
// came before.
type made struct {
	c        *scope
	object   store.Object
	replayed bool
}

// creation is a new object of a kind: build reads and validates it, and gives
// its name and body.
type creation struct {
	op   Op
	kind string
	key  string // Idempotency-Key
	node *document.Node
	// build sees the object with its id; it sets Name and Body.
	build func(c *scope, o *store.Object) error
}

// create makes an object once.
func (s *Service) create(ctx context.Context, a Actor, n creation) (made, error) {
	return repeat(func() (made, error) {
		c, err := s.enter(ctx, a, n.op)
		if err != nil {
			return made{}, err
		}
		if err := s.protect(ctx, c); err != nil {
			return made{}, err
		}
		once, known, err := s.once(ctx, c, n.key, "", n.node)
		if err != nil {
			return made{}, err
		}
		if known != "" {
			object, err := s.find(ctx, c, n.kind, known)
			return made{c, object, true}, err
		}
		object := store.Object{Workspace: c.object.ID, Kind: n.kind, Source: SourceAPI}
		if object.ID, err = s.newID(idPrefix(n.kind)); err != nil {
			return made{}, err
		}
		if err := n.build(c, &object); err != nil {
			return made{}, err
		}
		if err := s.nameFree(ctx, c, n.kind, object.Name, ""); err != nil {
			return made{}, err
		}
		edits := []store.Edit{{Object: object, Audit: c.audit(&object, nil, object.Body)}}
		if once != nil {
			edit, err := once.edit(object.ID)
			if err != nil {
				return made{}, err
			}
			edits = append(edits, edit)
		}
		if err := s.change(ctx, c.at, append(edits, c.guard...)); err != nil {
			return made{}, err
		}
		object.Version, object.CreatedAt, object.UpdatedAt = 1, c.at, c.at
		return made{c: c, object: object}, nil
	})
}

// update changes an object: build reads the change over it, and sets Name, Body
// and Epoch. One that changes nothing is no change.
func (s *Service) update(ctx context.Context, a Actor, op Op, kind, ref string, build func(c *scope, o *store.Object) error) (made, error) {
	return repeat(func() (made, error) {
		c, err := s.enter(ctx, a, op)
		if err != nil {
			return made{}, err
		}
		if err := s.protect(ctx, c); err != nil {
			return made{}, err
		}
		now, err := s.changeable(ctx, c, kind, ref)
		if err != nil {
			return made{}, err
		}
		next := now
		if err := build(c, &next); err != nil {
			return made{}, err
		}
		if next.Name != now.Name {
			if err := s.nameFree(ctx, c, kind, next.Name, now.ID); err != nil {
				return made{}, err
			}
		}
		if next.Name == now.Name && bytes.Equal(next.Body, now.Body) {
			return made{c: c, object: now}, nil
		}
		edit := store.Edit{Object: next, Expect: now.Version, Audit: c.audit(&next, now.Body, next.Body)}
		if err := s.change(ctx, c.at, append(c.guard, edit)); err != nil {
			return made{}, err
		}
		next.Version, next.UpdatedAt = now.Version+1, c.at
		return made{c: c, object: next}, nil
	})
}

// alone is that nothing more is retired.
func alone(*scope, *store.Object) ([]store.Edit, error) { return nil, nil }

// remove retires an object, and with it what more there is to retire; that may
// also refuse.
func (s *Service) remove(ctx context.Context, a Actor, op Op, kind, ref string, more func(c *scope, o *store.Object) ([]store.Edit, error)) (made, error) {
	return repeat(func() (made, error) {
		c, err := s.enter(ctx, a, op)
		if err != nil {
			return made{}, err
		}
		if err := s.protect(ctx, c); err != nil {
			return made{}, err
		}
		object, err := s.changeable(ctx, c, kind, ref)
		if err != nil {
			return made{}, err
		}
		edits := []store.Edit{{Object: object, Expect: object.Version, Retire: true, Audit: c.audit(&object, object.Body, nil)}}
		rest, err := more(c, &object)
		if err != nil {
			return made{}, err
		}
		if err := s.change(ctx, c.at, slices.Concat(rest, edits, c.guard)); err != nil {
			return made{}, err
		}
		object.Version, object.UpdatedAt, object.RetiredAt = object.Version+1, c.at, c.at
		return made{c: c, object: object}, nil
	})
}

// page reads one page of a kind's live objects by name.
func (s *Service) page(ctx context.Context, c *scope, kind, cursor string, limit int) (list []store.Object, next string, err error) {
	size, err := pageSize(limit)
	if err != nil {
		return nil, "", err
	}
	after, err := placeOf(cursor)
	if err != nil {
		return nil, "", err
	}
	if list, err = s.Objects.List(ctx, c.object.ID, kind, after, size+1); err != nil {
		return nil, "", answer(err)
	}
	list, next = trim(list, size, func(o store.Object) string { return o.Name })
	return list, next, nil
}
