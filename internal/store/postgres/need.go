// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/internal/ledger"
)

// openKey is the key of an open reservation, an event or a call.
type openKey struct {
	workspace string
	id        ledger.ID
}

func compareOpen(a, b openKey) int {
	return cmp.Or(cmp.Compare(a.workspace, b.workspace), a.id.Compare(b.id))
}

func compareCounters(a, b ledger.Counter) int {
	switch {
	case a.Less(b):
		return -1
	case b.Less(a):
		return 1
	default:
		return 0
	}
}

// needs is what a batch names, every list in the order that it is locked in and
// without repetitions.
type needs struct {
	workspaces []string
	// counters are locked. must are those of them that have to have a row: an
	// operation may change them. What is only read may be absent.
	counters, must []ledger.Counter
	// claims are locked before any counter, lookups read after all of them: the
	// lost transaction that an operation asks about may still be committing.
	claims, lookups []openKey
}

func gather(ops []*ledger.Op) *needs {
	n := &needs{counters: make([]ledger.Counter, 0, 8*len(ops)), claims: make([]openKey, 0, len(ops))}
	for _, op := range ops {
		n.workspaces = append(n.workspaces, op.Workspace)
		op.Needs(func(c ledger.Counter, _ *ledger.Check) {
			n.counters = append(n.counters, c)
			if op.Verb != ledger.Read {
				n.must = append(n.must, c)
			}
		}, func(id ledger.ID) {
			key := openKey{op.Workspace, id}
			if op.Reservation != nil {
				n.claims = append(n.claims, key)
			} else {
				n.lookups = append(n.lookups, key)
			}
		})
	}
	slices.Sort(n.workspaces)
	n.workspaces = slices.Compact(n.workspaces)
	n.counters, n.must = unique(n.counters, compareCounters), unique(n.must, compareCounters)
	n.claims, n.lookups = unique(n.claims, compareOpen), unique(n.lookups, compareOpen)
	return n
}

func unique[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// claimArgs are the columns of open reservations, with the versions of those that
// are remembered; 0 is nobody's.
func claimArgs(list []openKey, known map[openKey]opened) [][]byte {
	return append(openArgs(list), ints(len(list), func(i int) int64 { return known[list[i]].version }))
}

// openArgs are the columns of the keys of open reservations.
func openArgs(list []openKey) [][]byte {
	return [][]byte{
		texts(len(list), func(i int) string { return list[i].workspace }),
		uuids(len(list), func(i int) ledger.ID { return list[i].id }),
	}
}

// counterArgs are the columns of the keys of counters.
func counterArgs(list []ledger.Counter, more ...[]byte) [][]byte {
	n := len(list)
	return append([][]byte{
		texts(n, func(i int) string { return list[i].Workspace }),
		texts(n, func(i int) string { return list[i].Limit }),
		ints(n, func(i int) int64 { return int64(list[i].Epoch) }),
		texts(n, func(i int) string { return list[i].Subject }),
		ints(n, func(i int) int64 { return list[i].Window }),
	}, more...)
}
