// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/store"
)

// kindGuard is an object that every change writes which relies on other objects
// of the workspace being there, or being no more than so many. Of two such
// changes at a time one finds the other's version and is made again: no key is
// left with a plan that was deleted meanwhile. It is born retired, so that no
// snapshot loads it.
const (
	kindGuard = "guard"
	guardID   = "references"
	// fileID is the shared one that every file which changes something writes: a plan
	// is made of many readings, and two that are made at a time would each retire what
	// the other has just made.
	fileID = "file"
)

// protect makes the changes of an operation exclude others that rely on the
// same. It comes before what is relied on is read.
func (s *Service) protect(ctx context.Context, c *scope) error {
	if len(c.guard) > 0 {
		return nil
	}
	edit, err := s.guardEdit(ctx, c.object.ID, guardID)
	c.guard = []store.Edit{edit}
	return err
}

func (s *Service) guardEdit(ctx context.Context, workspace, id string) (store.Edit, error) {
	object, err := s.Objects.Object(ctx, workspace, kindGuard, id)
	if errors.Is(err, store.ErrNotFound) {
		object, err = store.Object{}, nil
	}
	return store.Edit{Expect: object.Version, Retire: true, Object: store.Object{
		Workspace: workspace, Kind: kindGuard, ID: id, Name: id, Body: []byte("{}"), Source: SourceAPI,
	}}, err
}
