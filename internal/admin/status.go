// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/weirhq/weir/internal/store"
)

// AuditList is one page of changes, the newest first.
func (s *Service) AuditList(ctx context.Context, a Actor, r AuditListRequest) (AuditListAnswer, error) {
	out := AuditListAnswer{Entries: []AuditEntry{}}
	c, err := s.enter(ctx, a, OpAuditList)
	if err != nil {
		return out, err
	}
	workspace := c.object.ID
	if r.Shared {
		if a.Role != System {
			return out, permitOnly(a, System)
		}
		workspace = ""
	}
	size, err := pageSize(r.Limit)
	if err != nil {
		return out, err
	}
	before, err := offset(r.Cursor)
	if err != nil {
		return out, err
	}
	list, err := s.Log.AuditList(ctx, workspace, int64(before), size+1)
	if err != nil {
		return out, answer(err)
	}
	list, out.NextCursor = trim(list, size, func(e store.Audit) string { return strconv.FormatInt(e.Seq, 10) })
	for i := range list {
		e := &list[i]
		out.Entries = append(out.Entries, AuditEntry{
			Seq: e.Seq, At: instant(e.At), Actor: e.Actor, Action: e.Action, Kind: e.Kind, ID: e.ID, Name: e.Name,
			Before: text(e.Before), After: text(e.After),
		})
	}
	return out, nil
}

func text(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	return body
}

// Status says what answers.
func (s *Service) Status(_ context.Context, a Actor, _ StatusRequest) (StatusAnswer, error) {
	if err := permit(a, OpStatus); err != nil {
		return StatusAnswer{}, err
	}
	return StatusAnswer{
		Version: s.Version, StartedAt: instant(s.startedAt), Now: instant(s.Clock.Now()), Store: s.Store, Durable: s.Durable,
		Catalogue: s.Prices.Source(), CatalogueDate: s.Prices.Date(),
	}, nil
}
