// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/weirhq/weir/internal/store"
)

// LongestWindow is the length in microseconds of the longest fixed window that a
// budget in force counts in, calendar months left aside: usage events are kept at
// least as long (SPEC RES-6). It reads every budget.
func (s *Service) LongestWindow(ctx context.Context) (longest int64, err error) {
	err = s.each(ctx, "", kindWorkspaceName, func(name store.Object) error {
		workspace, err := s.workspaceNamed(ctx, name.Name)
		if err != nil {
			return err
		}
		return s.each(ctx, workspace.ID, KindBudget, func(o store.Object) error {
			b, err := decodeBudget(&o)
			if err == nil {
				longest = max(longest, b.WindowMicros)
			}
			return err
		})
	})
	return longest, answer(err)
}
