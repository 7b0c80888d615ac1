// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
	"github.com/weirhq/weir/internal/window"
)

const (
	maxGrace       = 30 * 86_400 // seconds
	microsInSecond = 1_000_000
)

// KeyCreate makes a key and returns its secret, once.
func (s *Service) KeyCreate(ctx context.Context, a Actor, r KeyCreateRequest) (KeyAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return KeyAnswer{}, err
	}
	return repeat(func() (KeyAnswer, error) {
		c, err := s.enter(ctx, a, OpKeyCreate)
		if err != nil {
			return KeyAnswer{}, err
		}
		once, known, err := s.once(ctx, c, r.IdempotencyKey, "", n)
		if err != nil || known != "" {
			return s.replayed(ctx, c, known, err)
		}
		k, err := s.newKey(ctx, c, n)
		if err != nil {
			return KeyAnswer{}, err
		}
		if err := s.nameFree(ctx, c, KindKey, k.Name, ""); err != nil {
			return KeyAnswer{}, err
		}
		if k.ID, err = s.newID(idPrefix(KindKey)); err != nil {
			return KeyAnswer{}, err
		}
		object := store.Object{Workspace: c.object.ID, Kind: KindKey, ID: k.ID, Name: k.Name, Source: SourceAPI}
		return s.putKey(ctx, c, put{object: object, key: k, secret: true, once: once})
	})
}

// newKey reads a new key, copies the template into what was left out, and holds
// the result to the workspace (SPEC KEY-4, RUN-4, CAP-2).
func (s *Service) newKey(ctx context.Context, c *scope, n *document.Node) (*tenant.Key, error) {
	k := &tenant.Key{}
	given, err := readKey(k, n)
	if err != nil {
		return nil, invalid(err)
	}
	if k.Name == "" {
		return nil, refuse("name", "is required")
	}
	k.ApplyTemplate(c.workspace.KeyTemplate, given, window.DayAt(c.at, c.zone).String())
	if err := k.Validate(c.workspace); err != nil {
		return nil, invalid(err)
	}
	if err := s.keepable(keyMoney(k)); err != nil {
		return nil, invalid(err)
	}
	return k, s.planNamed(ctx, c, k.Plan, "plan")
}

// readKey reads a key's fields and its name over the values that it has.
func readKey(k *tenant.Key, n *document.Node) (given map[string]bool, err error) {
	given, err = document.Read(n, func(r *document.Reader) {
		r.String("name", &k.Name)
		k.Fields(r)
	})
	for path := range given {
		delete(k.FromTemplate, path)
	}
	return given, err
}

// KeyUpdate changes what the body gives of a key. What the workspace's ceiling
// has fallen below since stays, unless the change touches it (SPEC RUN-4).
func (s *Service) KeyUpdate(ctx context.Context, a Actor, r KeyUpdateRequest) (KeyAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return KeyAnswer{}, err
	}
	return s.updateKey(ctx, a, OpKeyUpdate, r.Key, func(c *scope, k *tenant.Key) error {
		given, err := readKey(k, n)
		if err != nil {
			return invalid(err)
		}
		if k.Name == "" {
			return refuse("name", "is required")
		}
		if err := touched(k.Validate(c.workspace), given); err != nil {
			return invalid(err)
		}
		if err := answer(s.keepable(keyMoney(k))); err != nil || !given["plan"] {
			return err
		}
		return s.planNamed(ctx, c, k.Plan, "plan")
	})
}

// touched leaves out what is wrong with runtime limits that were not given.
func touched(err error, given map[string]bool) error {
	var problems, left document.Problems
	if !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		if given[p.Path] || !strings.HasPrefix(p.Path, "limits.") {
			left = append(left, p)
		}
	}
	return left.Err()
}

// KeyDisable refuses a key's requests from now on.
func (s *Service) KeyDisable(ctx context.Context, a Actor, r KeyRequest) (KeyAnswer, error) {
	return s.updateKey(ctx, a, OpKeyDisable, r.Key, func(_ *scope, k *tenant.Key) error {
		k.Disabled = true
		return nil
	})
}

// KeyEnable takes KeyDisable back.
func (s *Service) KeyEnable(ctx context.Context, a Actor, r KeyRequest) (KeyAnswer, error) {
	return s.updateKey(ctx, a, OpKeyEnable, r.Key, func(_ *scope, k *tenant.Key) error {
		k.Disabled = false
		return nil
	})
}

// updateKey reads a key, changes it and writes it, again if another change came
// between.
func (s *Service) updateKey(ctx context.Context, a Actor, op Op, ref string, change func(*scope, *tenant.Key) error) (KeyAnswer, error) {
	return repeat(func() (KeyAnswer, error) {
		c, err := s.enter(ctx, a, op)
		if err != nil {
			return KeyAnswer{}, err
		}
		object, k, err := s.changeableKey(ctx, c, ref)
		if err != nil {
			return KeyAnswer{}, err
		}
		if err := change(c, k); err != nil {
			return KeyAnswer{}, err
		}
		if k.Name != object.Name {
			if err := s.nameFree(ctx, c, KindKey, k.Name, object.ID); err != nil {
				return KeyAnswer{}, err
			}
		}
		return s.putKey(ctx, c, put{object: object, key: k})
	})
}

// KeyRotate gives a key a new secret; id, counters and limits stay (SPEC KEY-3).
func (s *Service) KeyRotate(ctx context.Context, a Actor, r KeyRotateRequest) (KeyAnswer, error) {
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return KeyAnswer{}, err
	}
	var grace int64
	if _, err := document.Read(n, func(r *document.Reader) { r.Int("grace_seconds", &grace, 0, maxGrace) }); err != nil {
		return KeyAnswer{}, invalid(err)
	}
	return repeat(func() (KeyAnswer, error) {
		c, err := s.enter(ctx, a, OpKeyRotate)
		if err != nil {
			return KeyAnswer{}, err
		}
		object, k, err := s.changeableKey(ctx, c, r.Key)
		if err != nil {
			return KeyAnswer{}, err
		}
		once, known, err := s.once(ctx, c, r.IdempotencyKey, object.ID, n)
		if err != nil || known != "" {
			return s.replayed(ctx, c, known, err)
		}
		end := c.at + grace*microsInSecond
		return s.putKey(ctx, c, put{object: object, key: k, secret: true, expire: &end, once: once})
	})
}

// KeyDelete retires a key and the budgets and rules that bound it alone: its
// secrets end at once, its records stay.
func (s *Service) KeyDelete(ctx context.Context, a Actor, r KeyRequest) (KeyAnswer, error) {
	return repeat(func() (KeyAnswer, error) {
		c, err := s.enter(ctx, a, OpKeyDelete)
		if err != nil {
			return KeyAnswer{}, err
		}
		if err := s.protect(ctx, c); err != nil {
			return KeyAnswer{}, err
		}
		object, k, err := s.changeableKey(ctx, c, r.Key)
		if err != nil {
			return KeyAnswer{}, err
		}
		limits, err := s.retireLimits(ctx, c, &object)
		if err != nil {
			return KeyAnswer{}, err
		}
		edit := store.Edit{
			Object: object, Expect: object.Version, Retire: true, ExpireSecrets: &c.at,
			Audit: c.audit(&object, object.Body, nil),
		}
		if err := s.change(ctx, c.at, slices.Concat(limits, []store.Edit{edit}, c.guard)); err != nil {
			return KeyAnswer{}, err
		}
		object.Version, object.UpdatedAt, object.RetiredAt = object.Version+1, c.at, c.at
		return viewKey(&object, k, c.at), nil
	})
}

// put is a key to write: new when the object has no version yet.
type put struct {
	object store.Object
	key    *tenant.Key
	secret bool   // make a new one
	expire *int64 // of the earlier ones
	once   *claim // the Idempotency-Key
}

func (s *Service) putKey(ctx context.Context, c *scope, p put) (KeyAnswer, error) {
	edit := store.Edit{Object: p.object, Expect: p.object.Version, ExpireSecrets: p.expire}
	secret := ""
	if p.secret {
		made, hash, err := s.newSecret(ctx, p.key)
		if err != nil {
			return KeyAnswer{}, err
		}
		secret = made
		edit.AddSecret = &store.KeySecret{Hash: hash, Workspace: p.object.Workspace, KeyID: p.object.ID}
	}
	body, err := tenant.EncodeKey(p.key)
	if err != nil {
		return KeyAnswer{}, err
	}
	if !p.secret && bytes.Equal(body, p.object.Body) && p.key.Name == p.object.Name {
		return viewKey(&p.object, p.key, c.at), nil
	}
	edit.Object.Body, edit.Object.Name = body, p.key.Name
	edit.Audit = c.audit(&edit.Object, before(&p.object), body)
	edits := []store.Edit{edit}
	if p.once != nil {
		once, err := p.once.edit(p.object.ID)
		if err != nil {
			return KeyAnswer{}, err
		}
		edits = append(edits, once)
	}
	if err := s.change(ctx, c.at, append(edits, c.guard...)); err != nil {
		return KeyAnswer{}, err
	}
	written := edit.Object
	written.Version, written.UpdatedAt = written.Version+1, c.at
	if written.CreatedAt == 0 {
		written.CreatedAt = c.at
	}
	out := viewKey(&written, p.key, c.at)
	out.Secret = secret
	return out, nil
}

func before(o *store.Object) []byte {
	if o.Version == 0 {
		return nil
	}
	return o.Body
}

func (s *Service) newSecret(ctx context.Context, k *tenant.Key) (secret string, hash [32]byte, err error) {
	var random [tenant.SecretRandomBytes]byte
	if _, err = io.ReadFull(s.Random, random[:]); err != nil {
		return "", hash, fmt.Errorf("make a secret: %w", err)
	}
	storeSecret, err := s.Secrets.StoreSecret(ctx)
	if err != nil {
		return "", hash, fmt.Errorf("make a secret: %w", err)
	}
	secret, k.Prefix, hash = tenant.NewSecret(random, storeSecret)
	return secret, hash, nil
}

// findKey finds a key of the workspace by id, else by name; retired ones too.
func (s *Service) findKey(ctx context.Context, c *scope, ref string) (store.Object, *tenant.Key, error) {
	object, err := s.find(ctx, c, KindKey, ref)
	if err != nil {
		return object, nil, err
	}
	k, err := decodeKey(&object)
	return object, k, err
}

func decodeKey(o *store.Object) (*tenant.Key, error) {
	k, err := tenant.DecodeKey(o.Body)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", o.ID, err)
	}
	k.ID, k.Name = o.ID, o.Name
	return k, nil
}

func (s *Service) changeableKey(ctx context.Context, c *scope, ref string) (store.Object, *tenant.Key, error) {
	object, k, err := s.findKey(ctx, c, ref)
	if err == nil && object.RetiredAt > 0 {
		err = fault.New(fault.NotFound, "key %s is deleted", object.ID)
	}
	if err == nil {
		err = declaredInFile(&object)
	}
	return object, k, err
}
