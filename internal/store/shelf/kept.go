// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/weirhq/weir/internal/route"
)

// CompareKept orders by the key of their rows: whoever writes several locks them
// in this order.
func CompareKept(a, b route.Kept) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), bytes.Compare(a.Hash[:], b.Hash[:]), cmp.Compare(a.Provider, b.Provider))
}

// Kept is list in the order of its rows, each of them once, with its latest end.
func Kept(list []route.Kept) []route.Kept {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b route.Kept) int {
		return cmp.Or(CompareKept(a, b), cmp.Compare(b.ExpiresAt, a.ExpiresAt))
	})
	return slices.CompactFunc(list, func(a, b route.Kept) bool { return CompareKept(a, b) == 0 })
}
