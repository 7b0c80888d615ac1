// SPDX-License-Identifier: Apache-2.0

package shelf

import "github.com/weirhq/weir/internal/ledger"

// Rebuilds tells whether a loaded row of trailing days must be derived anew from
// its key's quarters before the operation reads it, and whose quarters: the
// operation's key, or where it names none the counter's subject (ENGINE 11).
func Rebuilds(op *ledger.Op, check *ledger.Check, s *ledger.State) (key string, ok bool) {
	if check == nil || !check.NeedsRebuild(s) {
		return "", false
	}
	if op.Subjects.Key != "" {
		return op.Subjects.Key, true
	}
	return check.Counter.Subject, true
}
