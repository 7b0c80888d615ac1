// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// KeyShow is one key, a deleted one too.
func (s *Service) KeyShow(ctx context.Context, a Actor, r KeyRequest) (KeyAnswer, error) {
	c, err := s.enter(ctx, a, OpKeyShow)
	if err != nil {
		return KeyAnswer{}, err
	}
	object, k, err := s.findKey(ctx, c, r.Key)
	if err != nil {
		return KeyAnswer{}, answer(err)
	}
	return viewKey(&object, k, c.at), nil
}

// KeyList is one page of the workspace's keys by name.
func (s *Service) KeyList(ctx context.Context, a Actor, r KeyListRequest) (KeyListAnswer, error) {
	out := KeyListAnswer{Keys: []KeyAnswer{}}
	c, err := s.enter(ctx, a, OpKeyList)
	if err != nil {
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
	list, err := s.Objects.List(ctx, c.object.ID, KindKey, after, size+1)
	if err != nil {
		return out, answer(err)
	}
	list, out.NextCursor = trim(list, size, func(o store.Object) string { return o.Name })
	for i := range list {
		k, err := decodeKey(&list[i])
		if err != nil {
			return out, answer(err)
		}
		out.Keys = append(out.Keys, viewKey(&list[i], k, c.at))
	}
	return out, nil
}

// KeyLimits lists every limit that applies to a key: whence it comes, its use,
// held amount, remaining and reset (SPEC EFF-1).
func (s *Service) KeyLimits(ctx context.Context, a Actor, r KeyRequest) (KeyLimitsAnswer, error) {
	c, err := s.enter(ctx, a, OpKeyLimits)
	if err != nil {
		return KeyLimitsAnswer{}, err
	}
	_, k, err := s.findKey(ctx, c, r.Key)
	if err != nil {
		return KeyLimitsAnswer{}, answer(err)
	}
	snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
	if err != nil {
		return KeyLimitsAnswer{}, answer(err)
	}
	out, err := s.keyLimits(ctx, snapshot, k)
	return out, answer(err)
}

func (s *Service) keyLimits(ctx context.Context, snapshot *admit.Snapshot, k *tenant.Key) (KeyLimitsAnswer, error) {
	result, err := s.read(ctx, admit.ReadOp(snapshot, k, admit.Attribution{}))
	if err != nil {
		return KeyLimitsAnswer{}, err
	}
	return admit.Describe(snapshot, k, admit.Attribution{}, result.Readings), nil
}

// read submits an operation that only reads.
func (s *Service) read(ctx context.Context, op *ledger.Op) (ledger.Result, error) {
	result, err := s.Decider.Submit(ctx, op)
	if err == nil && result.Verdict != ledger.Done {
		err = fmt.Errorf("read counters: verdict %d", result.Verdict)
	}
	return result, err
}

func viewKey(o *store.Object, k *tenant.Key, at int64) KeyAnswer {
	out := KeyAnswer{
		ID: o.ID, Name: o.Name, Prefix: k.Prefix, Status: "active", Team: k.Team, Project: k.Project, User: k.User,
		AllowedModels: k.AllowedModels, MaxOutputTokens: k.MaxOutputTokens, ExpiresAt: instant(k.ExpiresAt),
		Plan: k.Plan, AttributeUsers: k.AttributeUsers, RequireUser: k.RequireUser,
		Caps: viewCaps(k.Caps), Limits: RunValues(k.Limits), FromTemplate: k.FromTemplate,
		Source: o.Source, Origin: o.Origin, Version: o.Version, CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	switch {
	case o.RetiredAt > 0:
		out.Status = "retired"
	case k.Disabled:
		out.Status = "disabled"
	case !k.Active(at):
		out.Status = "expired"
	}
	return out
}
