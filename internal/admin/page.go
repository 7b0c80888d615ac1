// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/base64"

	"github.com/weirhq/weir/internal/store"
)

// Bounds of one page of a list.
const (
	defaultPage = 100
	maxPage     = 1000
)

// pageSize is how many items a list returns.
func pageSize(limit int) (int, error) {
	switch {
	case limit == 0:
		return defaultPage, nil
	case limit < 0 || limit > maxPage:
		return 0, refuse("limit", "must be from 1 to %d", maxPage)
	default:
		return limit, nil
	}
}

// cursorAfter makes a cursor out of the last item's place.
func cursorAfter(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// placeOf reads what cursorAfter made; "" for none.
func placeOf(cursor string) (string, error) {
	place, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", refuse("cursor", "is not one that a list answered with")
	}
	return string(place), nil
}

// trim cuts a list that was read one item longer than its page, and returns
// the cursor of the next one.
func trim[T any](list []T, size int, place func(T) string) (page []T, next string) {
	if len(list) <= size {
		return list, ""
	}
	return list[:size], cursorAfter(place(list[size-1]))
}

// each calls fn with every live object of a kind.
func (s *Service) each(ctx context.Context, workspace, kind string, fn func(store.Object) error) error {
	after := ""
	for {
		list, err := s.Objects.List(ctx, workspace, kind, after, maxPage)
		if err != nil {
			return err
		}
		for i := range list {
			if err := fn(list[i]); err != nil {
				return err
			}
		}
		if len(list) < maxPage {
			return nil
		}
		after = list[len(list)-1].Name
	}
}
